"""Better kernels on the page: how they compare, where they are, and what was refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from evaluated_run import BROKEN, FASTER, NOISE, REASON, write_evaluations
from sample_run import RUN, embedded

from runner.report.page import render_page, write_page
from runner.report.subject import find_subject
from runner.store.evaluation import EVALUATION_FILE
from runner.tree.document import Tree


@pytest.fixture(scope="module")
def evaluated(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run with evaluations, and its page."""
    output = Path(shutil.copytree(made, tmp_path_factory.mktemp("evaluated") / "output"))
    write_evaluations(output)
    write_page(find_subject(RUN, output), output / "report.html")
    return output


@pytest.fixture
def opened(visit: Any, evaluated: Path) -> Callable[..., Any]:
    def at(address: str, **options: Any) -> Any:
        page = visit(address, file=evaluated / "report.html", **options)
        if "#/p/" in address:
            page.wait_for_selector(".canvas[data-nodes]")
        return page

    return at


def test_the_summary_counts_better_workloads_and_their_share(evaluated: Path) -> None:
    page = (evaluated / "report.html").read_text()
    solved = embedded(page, "run")["solved"]
    assert (solved["models"], solved["solutions"], solved["right"]) == (2, 4, 2)
    assert solved["better"]["fusion"] == [1, 7]
    assert solved["better"]["kernel"][0] == 0
    trees = [Tree.read(evaluated / "level3" / name) for name in ("mlp", "attention_block")]
    total = sum(tree.root.flops for tree in trees)
    inside = trees[0].nodes["network_linear_relu"].flops
    assert solved["measure"] == "FLOPs"
    assert solved["shares"]["level3"] == pytest.approx(inside / total, rel=1e-3)


def test_an_evaluation_that_cannot_be_read_is_a_note(evaluated: Path, tmp_path: Path) -> None:
    output = Path(shutil.copytree(evaluated, tmp_path / "output"))
    (output / "level3/mlp" / EVALUATION_FILE).write_text("{")
    path = output / "level3/attention_block" / EVALUATION_FILE
    document = json.loads(path.read_text()) | {"source_sha256": "other"}
    path.write_text(json.dumps(document))
    run = embedded(render_page(find_subject(RUN, output)), "run")
    assert any("not a readable evaluation" in note for note in run["notes"])
    assert any("evaluated on another original.py" in note for note in run["notes"])
    assert run["solved"]["models"] == 1


@pytest.mark.browser
def test_solutions_are_compared_pair_by_pair_and_refusals_have_reasons(opened: Any) -> None:
    page = opened("")
    page.get_by_role("link", name="solutions", exact=True).first.click()
    page.wait_for_selector("h1 >> text=Solutions")
    assert "2 of 4 solutions are right" in page.inner_text("main")
    assert "1 of 7 fusions has a better version: " in page.inner_text("main")
    assert "of level3's FLOPs" in page.inner_text("main")
    assert page.locator("[aria-labelledby=refused] li").count() == 2
    assert REASON in page.inner_text("[aria-labelledby=refused]")
    row = page.locator("[aria-labelledby=each] tbody tr").first
    assert "2.50× (2.40 to 2.60)" in row.inner_text()
    assert row.locator(".pairs i").count() == 28
    assert "28 pairs" in row.locator(".pairs").get_attribute("aria-label")
    row.locator(".opener").click()
    page.wait_for_selector(".evidence .chart canvas")
    assert page.locator(".evidence .chart").count() == 2
    page.locator(".evidence summary").click()
    assert "own inputs" in page.inner_text(".evidence details table")
    page.get_by_role("searchbox").fill("broken")
    assert page.locator("[aria-labelledby=each] .opener").all_inner_texts() == [BROKEN]
    models = page.inner_text("[aria-labelledby=models]")
    assert "1.40×" in models
    assert "2.0e-7" in models


@pytest.mark.browser
def test_solutions_are_marked_where_they_are(opened: Any) -> None:
    page = opened("#/p/level3/mlp")
    assert "2 of 3 right" in page.inner_text(".facts")
    assert "3 solutions" in page.inner_text(".outline [aria-level='1'] > .row")
    marks = page.locator(".outline .badge").all_inner_texts()
    assert "✓ 2.50×" in marks
    labels = page.evaluate(
        "document.querySelector('.canvas')._cyreg.cy.nodes().map((n) => n.data('label'))"
    )
    assert any("solution ✓ 2.50×" in label for label in labels)
    assert "✗ wrong" in page.inner_text(".kernels")
    page.locator(".outline .row", has_text="✓ 2.50×").click()
    page.wait_for_selector(".details .badge[data-outcome=faster]")
    page.get_by_role("link", name="all about it").click()
    page.wait_for_selector("h1 >> text=Solutions")
    assert page.locator("[aria-labelledby=each] .opener").all_inner_texts() == [FASTER]


@pytest.mark.browser
def test_the_catalogue_says_which_workloads_have_a_solution(opened: Any) -> None:
    page = opened("#/workloads")
    assert "workloads have a better kernel" in page.inner_text("main")
    page.get_by_role("searchbox").fill("solution")
    page.get_by_role("button", name=NOISE).click()
    assert "noise" in page.inner_text(".below .badge")
    assert page.locator(".below .family tr[aria-current]").inner_text().startswith(NOISE)


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 800])
def test_solutions_fit_a_phone(opened: Any, width: int) -> None:
    page = opened("#/solutions", viewport={"width": width, "height": 780})
    page.locator(".opener").first.click()
    page.wait_for_selector(".evidence .chart canvas")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_report_without_evaluations_has_no_such_page(written: Path) -> None:
    page = written.read_text()
    assert embedded(page, "run")["solved"] is None
    assert 'id="solutions"' not in page
