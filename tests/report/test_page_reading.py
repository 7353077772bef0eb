"""Reading a problem on the page: its tree, its graph, its code, its times, why it failed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sample_run import RUN, write_run

from runner.batch import local_execution
from runner.batch.child.child_process import close_fork_server
from runner.cli import cli
from runner.config import Settings
from runner.report.measurements import read_measurements
from runner.report.page import write_page
from runner.report.subject import find_subject
from runner.store.manifest_row import Row
from runner.store.result import RESULT_FILE, ProblemResult, sha256_of

pytestmark = [pytest.mark.browser, pytest.mark.long]

STACK = '''"""Blocks that are equal but for their weights."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x):
        return x + torch.relu(self.linear(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(5))
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def get_inputs():
    return [torch.randn(4, 16)]


def get_init_inputs():
    return []
'''
BROKEN = STACK.replace(
    "return self.head(x)", 'print("almost there")\n        return self.head(x.T)'
)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output directory with a stack of blocks, measured, and with a problem that fails."""
    place = tmp_path_factory.mktemp("reading")
    for name, text in (("stack", STACK), ("broken", BROKEN)):
        (place / f"{name}.py").write_text(text)
    settings = Settings(output=place / "output", trials=1)
    for name in ("stack", "broken"):
        local_execution.decompose(place / f"{name}.py", settings)
    close_fork_server()
    rows = []
    for name in ("broken", "stack"):
        directory = settings.output / "custom" / name
        result = ProblemResult.from_directory(directory)
        digest = sha256_of(directory / RESULT_FILE)
        rows.append(Row.from_result(result, attempts=1, result_sha256=digest))
    files = [str(place / f"{name}.py") for name in ("broken", "stack")]
    write_run(settings.output, rows=rows, selected=2, arguments={"problem": files})
    done = CliRunner().invoke(
        cli, ["workloads", RUN, "--output", str(settings.output), "--measure"]
    )
    assert done.exit_code == 0, done.output
    write_page(find_subject(RUN, settings.output), settings.output / "report.html")
    return settings.output


def test_tied_weights_count_once_and_a_kernel_without_a_time_has_a_dash(
    visit: Any, tmp_path: Path
) -> None:
    tied = STACK.replace("self.head = nn.Linear(16, 3)", "self.head = self.layers[0].linear")
    (tmp_path / "tied.py").write_text(tied)
    settings = Settings(output=tmp_path / "output", trials=1)
    directory = local_execution.decompose(tmp_path / "tied.py", settings).directory
    close_fork_server()
    assert CliRunner().invoke(cli, ["workloads", str(directory), "--measure"]).exit_code == 0
    kept = read_measurements(directory)
    assert kept is not None
    some = kept.model_copy(update={"workloads": kept.workloads[:1]})
    (directory / "measurements.json").write_text(some.to_json())
    write_page(find_subject(str(directory), settings.output), tmp_path / "page.html")
    page = visit("#/p/custom/tied", file=tmp_path / "page.html")
    page.wait_for_selector(".facts")
    facts = page.locator(".fact")
    assert facts.filter(has_text="parameters").locator("dd").inner_text() == f"{5 * 272:,}"
    page.goto(f"file://{tmp_path / 'page.html'}#/workloads")
    page.wait_for_selector("td")
    shares = [row.locator("td").all_inner_texts()[-2:] for row in page.locator("tbody tr").all()]
    assert any("100.0%" in texts for texts in shares)
    assert any("-" in texts for texts in shares)


@pytest.fixture
def stack(visit: Any, output: Path) -> Callable[..., Any]:
    def opened(node: str = "", **options: Any) -> Any:
        page = visit(f"#/p/custom/stack{node}", file=output / "report.html", **options)
        page.wait_for_selector(".canvas[data-nodes]")
        return page

    return opened


def test_equal_neighbours_are_one_item_and_one_box(stack: Any) -> None:
    page = stack()
    row = page.locator('.outline [aria-level="2"]').first
    assert "× 5" in row.inner_text()
    assert "layers_0 … layers_4" in row.inner_text()
    assert page.locator('.outline [aria-level="2"]').count() == 2
    assert page.get_attribute(".canvas", "data-nodes") == "4"
    inner = stack("/layers_3")
    assert "in layers_3" in inner.inner_text('.outline [aria-selected="true"]')


def test_code_begins_with_code_and_can_be_wide(stack: Any) -> None:
    page = stack()
    assert page.inner_text(".code > pre").lstrip().startswith(("import", "from"))
    assert not page.locator(".docstring pre").is_visible()
    page.locator(".docstring summary").click()
    assert "Source" in page.inner_text(".docstring pre")
    narrow = page.locator(".code").bounding_box()["width"]
    page.get_by_role("button", name="wide").click()
    assert page.locator(".code").bounding_box()["width"] > 2 * narrow
    page.keyboard.press("Escape")
    assert page.locator(".code").bounding_box()["width"] == narrow


def test_borders_are_dragged_and_moved_by_keys(stack: Any) -> None:
    page = stack()
    border = page.get_by_role("separator", name="Width of the code")
    at = border.bounding_box()
    before = page.locator("section.details").bounding_box()["width"]
    page.mouse.move(at["x"] + 5, at["y"] + 100)
    page.mouse.down()
    page.mouse.move(at["x"] - 195, at["y"] + 100, steps=4)
    page.mouse.up()
    dragged = page.locator("section.details").bounding_box()["width"]
    assert dragged - before == pytest.approx(200, abs=8)
    border.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("section.details").bounding_box()["width"] < dragged


def test_the_graph_is_full_screen_and_the_wheel_scrolls_unless_ctrl_is_held(stack: Any) -> None:
    page = stack(viewport={"width": 1300, "height": 700})
    zoom = "document.querySelector('.canvas')._cyreg.cy.zoom()"
    canvas = page.locator(".canvas").bounding_box()
    before = page.evaluate(zoom)
    page.mouse.move(canvas["x"] + 200, canvas["y"] + 200)
    page.mouse.wheel(0, 150)
    page.wait_for_function("window.scrollY > 100")
    page.wait_for_timeout(400)  # While the page scrolls, Cytoscape does not zoom.
    assert page.evaluate(zoom) == before
    page.keyboard.down("Control")
    page.mouse.wheel(0, -150)
    page.wait_for_function(f"{zoom} !== {before}")
    page.keyboard.up("Control")
    page.get_by_role("button", name="full screen").click()
    assert page.locator(".pane.flow").bounding_box()["width"] == 1300
    page.keyboard.press("Escape")
    assert page.locator(".pane.flow").bounding_box()["width"] < 900


def test_every_kernel_fits_the_width(stack: Any) -> None:
    page = stack()
    page.check("#every")
    page.wait_for_function("Number(document.querySelector('.canvas').dataset.nodes) > 12")
    box = page.evaluate(
        "(() => { const cy = document.querySelector('.canvas')._cyreg.cy;"
        " const b = cy.elements().renderedBoundingBox(); return [b.x1, b.x2, cy.width()]; })()"
    )
    assert box[0] >= 0
    assert box[1] <= box[2]


def test_times_stand_where_people_look(stack: Any, output: Path) -> None:
    page = stack()
    facts = page.inner_text(".facts")
    assert "1,411" in facts.replace("\n", " ")  # 5 * (16 * 16 + 16) + 16 * 3 + 3
    assert "no remarks" in facts
    assert "gates" in facts
    page.locator(".fact", has_text="slowest kernel").locator("a").click()
    page.wait_for_selector(".file >> text=level_0_kernel/")
    assert "of the problem's time" in page.inner_text(".details dl")
    assert "/s" in page.inner_text(".details dl")
    table = page.get_by_role("table", name="Kernels")
    assert "of time" in table.inner_text()
    assert "of FLOPs" in table.inner_text()
    page.wait_for_selector(".kernels .chart[data-points]")
    assert "matrix product" in page.inner_text(".kernels")
    assert "GB/s (copy)" in page.inner_text(".kernels") or "MB/s (copy)" in page.inner_text(
        ".kernels"
    )
    kept = json.loads((output / "runs" / RUN / "measurements.json").read_text())
    assert kept["roofs"]["flops_per_s"]["float32"] > 1e8
    overview = visit_overview(page)
    assert "kernel time" in overview


def test_on_a_phone_the_slowest_kernel_is_shown_where_one_looks(stack: Any) -> None:
    page = stack(viewport={"width": 390, "height": 844})
    page.locator(".fact", has_text="slowest kernel").locator("a").click()
    page.wait_for_selector(".file >> text=level_0_kernel/")
    page.wait_for_function(
        "document.querySelector('.details .file').getBoundingClientRect().bottom < innerHeight"
    )
    assert "in 5 places" in page.inner_text(".facts") or "of time" in page.inner_text(".facts")


def visit_overview(page: Any) -> str:
    page.get_by_role("link", name="overview").click()
    page.wait_for_selector("#problems-section")
    return str(page.inner_text("#problems-section thead"))


def test_a_failed_problem_says_why_once_with_line_log_and_command(visit: Any, output: Path) -> None:
    page = visit(file=output / "report.html")
    page.wait_for_selector("html[data-searchable]")
    page.fill("#filter", "cannot be multiplied")
    assert page.inner_text("#problems-section tbody td:first-child") == "broken"
    page.locator(".failures a").first.click()
    page.wait_for_selector(".failure")
    reason = page.inner_text(".reason")
    assert "shapes cannot be multiplied" in reason
    assert page.inner_text("main").count("shapes cannot be multiplied") == 1
    assert page.inner_text("mark").strip() == "return self.head(x.T)"
    page.wait_for_function(
        "(() => { const mark = document.querySelector('mark'), pre = mark.closest('pre');"
        " const [a, b] = [mark, pre].map((e) => e.getBoundingClientRect());"
        " return a.top >= b.top && a.bottom <= b.bottom; })()"
    )
    assert "almost there" in page.inner_text(".log")
    command = page.inner_text(".command code")
    assert command.startswith("kdrun decompose ")
    assert "broken.py --trials 1" in command
