"""Taking things away from the page: files, a folder, tables, pictures."""

import csv
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from typing import Any

import pytest

from runner.batch.child.child_process import close_fork_server
from runner.batch.local_execution import verify
from runner.config import Settings
from runner.tree.document import Tree

pytestmark = pytest.mark.browser


def saved(page: Any, button: str, tmp_path: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name=button, exact=True).first.click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_a_component_is_saved_as_its_file(visit: Any, made: Path, tmp_path: Path) -> None:
    page = visit("#/p/level3/mlp")
    page.wait_for_selector(".canvas[data-nodes]")
    path = saved(page, "download", tmp_path)
    assert path.read_text() == next((made / "level3/mlp/level_3_model").glob("*.py")).read_text()
    assert path.name == next((made / "level3/mlp/level_3_model").glob("*.py")).name


def test_the_graph_is_saved_as_a_picture(visit: Any, tmp_path: Path) -> None:
    page = visit("#/p/level3/attention_block")
    page.wait_for_selector(".canvas[data-nodes]")
    picture = ET.parse(saved(page, "SVG", tmp_path)).getroot()
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert picture.tag.endswith("}svg")
    assert {"input", "output", "4×128×384 fp32"} <= set(texts)


@pytest.mark.parametrize(("address", "count"), [("", 1), ("#/workloads", 8)])
def test_a_table_is_saved_as_it_is_filtered(
    visit: Any, tmp_path: Path, address: str, count: int
) -> None:
    page = visit(address)
    page.get_by_role("searchbox").fill("mlp")
    rows = list(csv.DictReader(saved(page, "CSV", tmp_path).open()))
    assert len(rows) == count
    assert all(int(row["FLOPs"]) > 0 for row in rows)


@pytest.mark.long
def test_a_folder_is_saved_and_kdrun_verifies_it(visit: Any, made: Path, tmp_path: Path) -> None:
    page = visit("#/p/level3/mlp")
    page.wait_for_selector(".canvas[data-nodes]")
    zipfile.ZipFile(saved(page, "folder as zip", tmp_path)).extractall(tmp_path)
    assert Tree.read(tmp_path / "mlp").nodes == Tree.read(made / "level3/mlp").nodes
    answer = verify(tmp_path / "mlp", Settings(trials=1)).answer
    close_fork_server()
    assert answer.status == "passed", answer
