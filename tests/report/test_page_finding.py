"""Finding things on the page: words, shapes, links, and the questions that people come with."""

import json
from pathlib import Path
from typing import Any

import pytest
from census import census
from sample_run import RUN

from runner.report.page import html_page, write_page
from runner.report.subject import find_subject
from runner.tree.document import TREE_FILE

pytestmark = pytest.mark.browser

CENSUS = 1500


def names(page: Any) -> list[str]:
    found: list[str] = page.locator("#problems-section tbody td:first-child").all_inner_texts()
    return found


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("scaled_dot", ["level3/attention_block"]),  # an operation
        ("linear_384x1152", ["level3/attention_block"]),  # a file
        ("4x128x384", ["level3/attention_block"]),  # a shape
        ("4×128×384", ["level3/attention_block"]),
        ("linear relu", ["level3/mlp"]),
        ("linear-gelu", ["level2/linear_gelu"]),
        ("28x384", []),  # not a shape that is there
        ("soft level1", ["level1/softmax"]),
    ],
)
def test_problems_are_found_by_operation_file_and_shape(
    visit: Any, typed: str, found: list[str]
) -> None:
    page = visit()
    page.wait_for_selector("html[data-searchable]")
    page.fill("#filter", typed)
    assert names(page) == found


def test_a_link_shows_the_filter_and_the_order_again(visit: Any) -> None:
    page = visit()
    page.wait_for_selector("html[data-searchable]")
    page.fill("#filter", "linear")
    page.get_by_role("combobox", name="Level").select_option("level3")
    page.locator("#problems-section thead").get_by_role("button", name="kernels").click()
    address = page.evaluate("location.hash")
    again = visit(address)
    assert again.input_value("#filter") == "linear"
    assert names(again) == names(page) == ["level3/mlp", "level3/attention_block"]


def test_a_link_shows_the_open_node_and_the_zoom_again_and_the_tab_says_which(visit: Any) -> None:
    page = visit("#/p/level3/attention_block")
    page.wait_for_selector(".canvas[data-nodes]")
    page.check("#every")
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_function("location.hash.includes('zoom=')")
    zoom = "document.querySelector('.canvas')._cyreg.cy.zoom()"
    again = visit(page.evaluate("location.hash"))
    again.wait_for_selector(".canvas[data-nodes]")
    assert again.is_checked("#every")
    again.wait_for_function(f"Math.abs({zoom} - {page.evaluate(zoom)}) < 0.01")
    assert again.title() == "level3/attention_block · some-run - kdrun"
    again.get_by_role("link", name="workloads").click()
    again.wait_for_function("document.title === 'workloads · some-run - kdrun'")


def test_which_models_use_a_workload_and_its_code(visit: Any) -> None:
    page = visit("#/workloads")
    page.get_by_role("searchbox").fill("linear_384x1152")
    page.get_by_role("button", name="linear_384x1152").click()
    assert page.inner_text(".below .uses") == "level3/attention_block"
    assert "in_features=384" in page.inner_text(".below .code")
    page.get_by_role("searchbox").fill("attention_block 4x128x384")
    assert page.locator("tbody tr .opener").count() >= 3


def test_a_workload_has_the_sizes_of_its_family(visit: Any) -> None:
    page = visit("#/workloads")
    page.get_by_role("searchbox").fill("linear_512x512")
    page.get_by_role("button", name="linear_512x512").click()
    sizes = page.locator(".below .family")
    assert "linear on 2-d float32 with 2 weights" in sizes.locator("summary").inner_text()
    rows = sizes.locator("tbody tr").all_inner_texts()
    assert len(rows) >= 5
    assert "512×512" in sizes.locator("tr[aria-current]").inner_text()
    page.locator("[aria-labelledby=families] .opener").first.click()
    assert page.locator("[aria-labelledby=families] .below tbody tr").count() >= 1


def test_kernels_of_a_group_stand_below_its_name(visit: Any, output: Path) -> None:
    path = output / "level3/attention_block" / TREE_FILE
    tree = json.loads(path.read_text())
    fusion = tree["nodes"]["layer_norm_linear"]
    fusion["groups"] = [fusion["children"]]
    path.write_text(json.dumps(tree))
    write_page(find_subject(str(path.parent), output), output / "report.html")
    page = visit("#/p/level3/attention_block/layer_norm_linear", file=output / "report.html")
    page.wait_for_selector(".outline .group >> text=group: layer_norm + linear")
    assert page.locator(".outline .member").count() == 2
    label = page.locator(".outline .member").first.get_attribute("aria-label")
    assert "in the group layer_norm + linear" in label
    page.locator(".outline .member .row").first.click()
    page.get_by_role("link", name="which use it").click()
    page.wait_for_selector("h1 >> text=Workloads")
    assert page.locator("[aria-labelledby=each] .opener").count() == 1


def test_a_problem_of_a_large_run_is_read_from_its_file(
    visit: Any, output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_page, "MOST_EMBEDDED", 1)
    write_page(find_subject(RUN, output), tmp_path / "large run.html")
    page = visit("#/p/level3/mlp", file=tmp_path / "large run.html")
    page.wait_for_selector(".canvas[data-nodes]")
    page.locator(".outline .row").nth(1).click()
    page.wait_for_selector("pre code >> text=class")


@pytest.mark.long
def test_a_census_opens_and_is_searched_at_once(visit: Any, made: Path, tmp_path: Path) -> None:
    """Times are CPU time of the main thread, in units of a loop that the same browser runs."""
    write_page(census(made, CENSUS), tmp_path / "census.html")
    assert (tmp_path / "census.html").stat().st_size < 15e6
    page = visit()
    metrics = page.context.new_cdp_session(page)
    metrics.send("Performance.enable", {"timeDomain": "threadTicks"})

    def cpu_ms() -> float:
        rows = metrics.send("Performance.getMetrics")["metrics"]
        return 1000 * next(row["value"] for row in rows if row["name"] == "TaskDuration")

    def loop_ms() -> float:
        before = cpu_ms()
        page.evaluate("let sum = 0; for (let i = 0; i < 2e7; i++) sum += Math.sqrt(i) % 7; sum")
        return cpu_ms() - before

    def search_ms(query: str) -> float:
        before = cpu_ms()
        page.fill("input[type=search]", query)
        page.evaluate("document.body.offsetHeight")
        return cpu_ms() - before

    before = cpu_ms()
    page.goto(f"file://{tmp_path / 'census.html'}")
    page.wait_for_selector("html[data-ready]")
    ready_ms = cpu_ms() - before
    page.wait_for_selector("html[data-searchable]")
    queries = ("linear", "7x128x384", "model_77")
    took = {query: min(search_ms(query) for _ in range(3)) for query in queries}
    assert names(page)
    assert all("model_77" in name for name in names(page))
    page.goto(page.url.split("#")[0] + "#/workloads")
    page.wait_for_selector("text=10,500 unique workloads")
    took |= {f"{query}!": min(search_ms(query) for _ in range(3)) for query in ("linear", "add")}
    unit_ms = min(loop_ms() for _ in range(3))
    assert ready_ms < 5 * unit_ms, (ready_ms, unit_ms)
    assert max(took.values()) < 0.6 * unit_ms, json.dumps(took | {"loop": unit_ms})
