"""The report as a file: what is in it, and what it says of a run that is not whole."""

import base64
import gzip
import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sample_run import RUN, TAKEN_APART, embedded, write_run

from runner.cli import cli
from runner.errors import StoreError
from runner.report.page import (
    LIBRARIES,
    OWN_SCRIPTS,
    STYLES,
    html_page,
    render_page,
    write_page,
)
from runner.report.subject import find_subject
from runner.store.manifest_row import Row
from runner.tree.document import Tree

ASSETS = Path(__file__).parents[2] / "runner/report/assets"


def ran(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["report", *map(str, arguments)], standalone_mode=False)


@pytest.fixture(scope="module")
def page(made: Path) -> str:
    return render_page(find_subject(RUN, made))


def test_it_names_nothing_on_a_network(page: str) -> None:
    ours = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"""(src|href)=["']https?:|@import|url\(["']?http""", ours)


def test_every_problem_has_its_row_its_tree_and_its_files(page: str, made: Path) -> None:
    rows = embedded(page, "run")["problems"]
    assert [row["label"] for row in rows] == list(TAKEN_APART)
    for number, label in enumerate(TAKEN_APART):
        packed = embedded(page, f"problem-{number}")
        tree = Tree.read(made / label)
        assert packed["nodes"].keys() == tree.nodes.keys()
        assert all({"flops", "bytes"} <= node.keys() for node in packed["nodes"].values())
        assert set(packed["files"]) == {"original.py"} | {n.path for n in tree.nodes.values()}
        assert packed["files"]["original.py"] == (made / label / "original.py").read_text()
        assert {gate["verdict"] for gate in packed["gates"]} <= {"passed", "nothing_to_check"}


def test_the_same_files_give_the_same_page(page: str, made: Path) -> None:
    assert render_page(find_subject(RUN, made)) == page


def test_a_large_runs_problems_are_files_of_a_folder_beside_the_page(
    page: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_page, "MOST_EMBEDDED", len(TAKEN_APART) - 1)
    (tmp_path / "run_problems").mkdir()
    (tmp_path / "run_problems" / "mine.txt").touch()
    (tmp_path / "run_problems" / "problem-99.js").touch()
    write_page(find_subject(RUN, made), tmp_path / "run.html")
    assert (tmp_path / "run_problems" / "mine.txt").exists()
    assert not (tmp_path / "run_problems" / "problem-99.js").exists()
    split = (tmp_path / "run.html").read_text()
    assert 'data-folder="run_problems"' in split
    assert 'id="problem-0"' not in split
    assert embedded(split, "run") == embedded(page, "run")
    for name in ("problem-0", "folder-0", "shared"):
        text = (tmp_path / "run_problems" / f"{name}.js").read_text()
        packed = text.removeprefix('kdrunBlock("').removesuffix('");\n')
        assert json.loads(gzip.decompress(base64.b64decode(packed))) == embedded(page, name)


def test_what_a_reason_says_cannot_end_the_script(output: Path) -> None:
    bad = "</script><script>alert(1)</script><!--"
    row = Row(problem="evil", source_level="level1", status="error", reason=bad, attempts=1)
    write_run(output, rows=[row], selected=1)
    page = render_page(find_subject(RUN, output))
    assert "</script><script>alert" not in page
    assert embedded(page, "run")["problems"][0]["reason"] == bad


def test_a_run_that_is_still_going_says_so_on_the_page_and_beside_it(output: Path) -> None:
    write_run(output, state="running", selected=9)
    done = ran(RUN, "--output", output)
    assert done.exception is None
    assert "but mind: The run is still going: 5 problems of 9 to come." in done.output
    page = (output / "runs" / RUN / "report.html").read_text()
    assert embedded(page, "run")["notes"] == ["The run is still going: 5 problems of 9 to come."]


def test_missing_artifacts_leave_a_row_without_a_page(output: Path) -> None:
    shutil.rmtree(output / "level3/mlp")
    (output / "level1/softmax/verification/test_results.json").write_text("{")
    page = render_page(find_subject(RUN, output))
    rows = {row["label"]: row for row in embedded(page, "run")["problems"]}
    assert rows["level3/mlp"]["opens"] is False
    assert "no decomposition_tree.json" in rows["level3/mlp"]["missing"]
    assert embedded(page, "problem-0")["gates"] == []


def test_a_single_decomposition_is_a_page_too(made: Path, tmp_path: Path) -> None:
    done = ran(made / "level3/mlp", "--to", tmp_path / "mlp.html")
    assert done.exception is None
    assert done.output == f"{tmp_path / 'mlp.html'}\n"
    assert embedded((tmp_path / "mlp.html").read_text(), "run")["run"] is None


def test_a_place_that_cannot_be_written_is_one_line(made: Path, tmp_path: Path) -> None:
    subject = find_subject(RUN, made)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="file/report"):
        write_page(subject, tmp_path / "file" / "report.html")
    with pytest.raises(StoreError, match="a directory"):
        write_page(subject, tmp_path)


def test_each_library_comes_with_its_licence(page: str) -> None:
    assert page.count("Permission is hereby granted") >= 3
    assert "Redistribution and use in source and binary forms" in page
    for name in LIBRARIES:
        assert "copyright" in (ASSETS / f"vendor/{name}.LICENSE").read_text().lower()


def test_every_asset_is_used() -> None:
    files = {p.relative_to(ASSETS).as_posix() for p in ASSETS.rglob("*") if p.is_file()}
    licences = {name for name in files if name.endswith(".LICENSE")}
    assert files - licences == {
        *(f"vendor/{name}.min.js" for name in LIBRARIES),
        *OWN_SCRIPTS,
        *STYLES,
        "page.html",
    }
