"""The report in a real Chromium without a window: what a person does with it."""

import json
from pathlib import Path
from typing import Any

import pytest
from sample_run import RUN, write_run

from runner.report.page import write_page
from runner.report.subject import find_subject
from runner.store.manifest_row import Row
from runner.tree.document import TREE_FILE

pytestmark = pytest.mark.browser


def names(page: Any) -> list[str]:
    found: list[str] = page.locator("#problems-section tbody td:first-child").all_inner_texts()
    return found


def test_the_run_is_there_at_a_glance(visit: Any) -> None:
    page = visit()
    assert "4 of 4" in page.inner_text(".tiles")
    assert page.get_by_role("heading", name="Nothing failed").is_visible()
    assert len(names(page)) == 4


def test_problems_are_filtered_by_words_and_by_level(visit: Any) -> None:
    page = visit()
    page.keyboard.press("/")
    page.keyboard.type("gelu")
    assert names(page) == ["level2/linear_gelu"]
    assert page.inner_text("output") == "1 of 4 problems"
    page.fill("#filter", "")
    page.get_by_role("combobox", name="Level").select_option("level3")
    assert names(page) == ["level3/attention_block", "level3/mlp"]


def test_a_column_sorts_both_ways(visit: Any) -> None:
    page = visit()
    header = page.get_by_role("columnheader", name="kernels")
    header.get_by_role("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    first = names(page)[0]
    header.get_by_role("button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    assert first == names(page)[-1]


def test_a_person_clicks_through_to_a_kernel_and_reads_its_file(visit: Any) -> None:
    page = visit()
    page.get_by_role("link", name="level3/attention_block").click()
    page.wait_for_selector(".canvas[data-nodes]")
    page.locator(".outline .twist", has_text="▸").nth(1).click()
    page.locator('.outline [role=treeitem][aria-level="3"] .row').first.click()
    page.wait_for_selector(".file >> text=level_0_kernel/")
    assert "class Model" in page.inner_text(".code")
    assert page.locator(".code .hljs-keyword").count() > 5
    assert "✓ self-test" in page.inner_text(".details dl")
    page.get_by_role("button", name="original.py, line").click()
    assert page.locator(".code mark").is_visible()
    page.go_back()
    page.wait_for_selector(".file >> text=level_2_layer/")


def test_the_tree_is_used_with_the_keyboard_alone(visit: Any) -> None:
    page = visit("#/p/level3/attention_block")
    page.wait_for_selector(".canvas[data-nodes]")
    page.locator('[role=treeitem][aria-level="1"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector(".file >> text=level_0_kernel/")
    chosen = page.locator('[role=treeitem][aria-selected="true"]')
    assert chosen.get_attribute("aria-level") == "3"


def test_a_node_of_the_graph_is_clicked_and_its_edges_say_shapes(visit: Any) -> None:
    page = visit("#/p/level3/attention_block")
    page.wait_for_selector(".canvas[data-nodes]")
    page.check("#every")
    found = page.evaluate(
        """() => {
          const canvas = document.querySelector(".canvas"), cy = canvas._cyreg.cy;
          const highest = cy.nodes("[level='kernel']").min((each) => each.position("y"));
          const node = highest.ele, at = node.renderedPosition();
          const frame = canvas.getBoundingClientRect();
          return { id: node.id(), x: frame.x + at.x, y: frame.y + at.y,
                   labels: cy.edges().map((edge) => edge.data("label")) };
        }"""
    )
    assert all("fp32" in label for label in found["labels"])
    page.mouse.click(found["x"], found["y"])
    page.wait_for_function(
        "id => decodeURIComponent(location.hash.split('?')[0]).endsWith(id)", arg=found["id"]
    )
    page.wait_for_selector(".file >> text=level_0_kernel/")


def test_the_workloads_lead_to_where_they_are_used(visit: Any) -> None:
    page = visit("#/workloads")
    page.wait_for_selector(".chart canvas")
    assert "unique workloads" in page.inner_text("main")
    page.locator(".opener").first.click()
    assert "class Model" in page.inner_text(".below .code")
    page.locator(".below .uses a").first.click()
    page.wait_for_selector(".canvas[data-nodes]")


@pytest.mark.parametrize("address", ["", "#/workloads", "#/p/level3/attention_block"])
def test_a_phone_shows_it_without_scrolling_sideways(visit: Any, address: str) -> None:
    page = visit(address, viewport={"width": 360, "height": 780})
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_it_is_dark_where_the_system_is_and_light_where_one_wants(visit: Any) -> None:
    page = visit(color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(13, 16, 20)"
    page.get_by_role("button", name="colours: auto").click()
    assert page.evaluate(ground) == "rgb(246, 247, 249)"


def test_a_run_in_which_nothing_was_taken_apart_says_why(visit: Any, output: Path) -> None:
    reason = "ImportError: no <b>module</b> (line 3)"
    rows = [
        Row(problem=f"p{i}", source_level="level1", status=status, reason=reason, attempts=1)
        for i, status in enumerate(("error", "crashed", "timeout"))
    ]
    write_run(output, rows=rows, selected=40, state="interrupted")
    write_page(find_subject(RUN, output), output / "report.html")
    page = visit(file=output / "report.html")
    assert "37 problems of 40 not run" in page.inner_text(".note")
    assert page.locator(".failures li").count() == 3
    assert reason in page.inner_text(".failures")
    page.get_by_role("link", name="level1/p0").first.click()
    page.wait_for_selector("h1 >> text=level1/p0")
    assert reason in page.inner_text("main")
    page.get_by_role("link", name="workloads").click()
    page.wait_for_selector("text=There is no decomposition here")


def test_an_unrolled_loop_of_hundreds_of_kernels_is_drawn_and_opened(
    visit: Any, output: Path
) -> None:
    path = output / "level3/mlp" / TREE_FILE
    tree = json.loads(path.read_text())
    some = next(node for node in tree["nodes"].values() if node["level"] == "kernel")
    ids = [f"step_{i}" for i in range(1300)]
    tree["nodes"] |= {i: some | {"id": i, "name": i, "children": []} for i in ids}
    tree["nodes"]["root"]["children"] += ids
    edge = {"tensor_name": "h", "shape": [8, 16], "dtype": "float32"}
    ends = [*zip(["input", *ids[:-1]], ids, strict=True), *((i, "output") for i in ids)]
    tree["data_flow"] += [edge | {"from": a, "to": b} for a, b in ends]
    path.write_text(json.dumps(tree))
    write_page(find_subject(str(output / "level3/mlp"), output), output / "large.html")
    page = visit(file=output / "large.html")
    page.wait_for_selector(".canvas[data-nodes]")
    assert page.locator(".outline .times >> text=× 1301").is_visible()
    assert int(page.get_attribute(".canvas", "data-nodes")) < 12
    page.check("#every")
    page.wait_for_function("Number(document.querySelector('.canvas').dataset.nodes) > 1300")
    page.evaluate("location.hash = '#/p/level3/mlp/step_1299'")
    page.wait_for_selector(".where >> text=step_1299")
    assert "in step_1299" in page.inner_text('.outline [aria-selected="true"]')
