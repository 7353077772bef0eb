"""The page for everyone: axe's checks, keyboards, phones, people who want no motion."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from evaluated_run import write_evaluations
from sample_run import RUN, write_run

from runner.report.page import write_page
from runner.report.subject import find_subject
from runner.store.manifest_row import Row

pytestmark = [pytest.mark.browser, pytest.mark.long]

PAGES = {
    "overview": "#/",
    "workloads": "#/workloads",
    "changes": "#/changes",
    "solutions": "#/solutions",
    "model": "#/p/level3/mlp",
    "kernel": "#/p/level3/attention_block/attention.linear",
    "failed": "#/p/level1/broken",
}


@pytest.fixture(scope="module")
def comparison(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two runs, the second with a problem that fails."""
    place = tmp_path_factory.mktemp("everyone")
    output = Path(shutil.copytree(made, place / "output"))
    write_evaluations(output)
    broken = Row(
        problem="broken", source_level="level1", status="error", reason="no\nsense", attempts=1
    )
    first = find_subject(RUN, output)
    rows = [problem.row for problem in first.problems]
    write_run(output, rows=[*rows, broken], selected=5, run_id="next-run")
    second = find_subject("next-run", output)
    write_page(second, place / "comparison.html", [first])
    return place / "comparison.html"


@pytest.fixture
def opened(visit: Any, comparison: Path) -> Callable[..., Any]:
    def at(name: str, **options: Any) -> Any:
        page = visit(PAGES[name], file=comparison, **options)
        if name in ("model", "kernel"):
            page.wait_for_selector(".canvas[data-nodes]")
        if name in ("workloads", "model", "kernel"):
            page.wait_for_selector(".chart canvas")
        return page

    return at


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(opened: Any, name: str, theme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="pip install -e '.[dev]' brings axe"
    )
    page = opened(name, color_scheme=theme)
    for opener in page.locator(".opener").all()[:2]:
        opener.click()
    for summary in page.locator("main details > summary").all():
        if summary.is_visible():
            summary.click()
    found = axe.Axe().run(page).response
    told = [(v["id"], v["nodes"][0]["html"][:200]) for v in found["violations"]]
    assert told == []
    assert page.locator("h1").count() == 1


@pytest.mark.parametrize("width", [360, 800, 1440])
@pytest.mark.parametrize("name", PAGES)
def test_no_page_scrolls_sideways(opened: Any, name: str, width: int) -> None:
    page = opened(name, viewport={"width": width, "height": 780})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", PAGES)
def test_every_control_is_reached_by_tab(opened: Any, name: str) -> None:
    page = opened(name, viewport={"width": 1300, "height": 900})
    controls = page.evaluate(
        """() => {
          const kinds = "a[href], button, input, select, summary, [role=separator], .canvas";
          const all = document.querySelectorAll(kinds);
          return [...all].filter((e) => e.offsetParent && !e.disabled && e.tabIndex >= 0).length;
        }"""
    )
    page.evaluate("document.body.focus()")
    seen = set()
    for _ in range(controls + 60):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate(
                "(() => { const e = document.activeElement; window.seen ||= new Map();"
                " if (!seen.has(e)) seen.set(e, seen.size); return seen.get(e); })()"
            )
        )
    assert len(seen) >= controls


def test_nothing_moves_where_the_system_asks_for_no_motion(opened: Any) -> None:
    page = opened("model", reduced_motion="reduce")
    moving = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((e) => {
          const style = getComputedStyle(e);
          return style.animationName !== "none" || parseFloat(style.transitionDuration) > 0;
        }).map((e) => e.className)"""
    )
    assert moving == []
    assert page.evaluate("document.getAnimations().length") == 0
