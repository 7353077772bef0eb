"""Real decompositions of a few samples, made once: what reports are about; and a browser."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sample_run import RUN, TAKEN_APART, write_run

from runner.batch import local_execution
from runner.batch.child.child_process import close_fork_server
from runner.config import Settings
from runner.report.page import write_page
from runner.report.subject import find_subject

SAMPLES = Path(__file__).parents[2] / "data/samples"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output directory with a finished run; nobody changes it."""
    output = tmp_path_factory.mktemp("made") / "output"
    settings = Settings(output=output, trials=1)
    for label in TAKEN_APART:
        result = local_execution.decompose(SAMPLES / f"{label}.py", settings).result
        assert result.status == "passed", result.reason
    close_fork_server()
    write_run(output)
    return output


@pytest.fixture
def output(made: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return Path(shutil.copytree(made, tmp_path / "output"))


@pytest.fixture(scope="session")
def written(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of that run."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(find_subject(RUN, made), path)
    return path


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A real Chromium without a window."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install -e '.[dev]'"
    )
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any, written: Path) -> Iterator[Callable[..., Any]]:
    """Opens the page; afterwards: no error was printed, and nothing was asked of a network."""
    contexts, trouble = [], []

    def opened(address: str = "", file: Path = written, **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda said: trouble.append(said.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", lambda asked: trouble.append(asked.url) if _outside(asked.url) else None)
        page.goto(f"file://{file}{address}")
        page.wait_for_selector("html[data-ready]")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert trouble == []


def _outside(url: str) -> bool:
    return not url.startswith(("file:", "data:", "blob:"))
