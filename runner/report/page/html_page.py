"""Writes the report: one web page that holds a run, its problems and all their files.

The page needs no network. Its data and libraries are packed (gzip, base64), and the browser unpacks
each of them when it is needed. The problems of a large run are files in a folder beside the page,
which a browser reads when somebody opens one.
"""

import base64
import gzip
import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from runner.errors import StoreError, unwritable_error
from runner.report.catalogue import Catalogue, collect_workloads
from runner.report.measurements import read_measurements, with_measurements
from runner.report.page.comparison import comparison_data
from runner.report.page.problem_data import failure_data, folder_data, problem_data
from runner.report.page.run_data import Times, search_words, subject_data, times_of, workloads_data
from runner.report.page.solutions import read_evaluations, solutions_data, summarize_solutions
from runner.report.subject import Subject
from runner.store.directory import write_atomically

LIBRARIES = ("cytoscape", "dagre", "uplot", "highlight", "fflate")
"""Files `vendor/<name>.min.js`, each with its licence beside it."""
OWN_SCRIPTS = (
    "elements.js",
    "packed.js",
    "address.js",
    "table.js",
    "charts.js",
    "overview.js",
    "workloads.js",
    "changes.js",
    "outline.js",
    "flow.js",
    "graph.js",
    "code.js",
    "speeds.js",
    "solutions.js",
    "details.js",
    "panes.js",
    "kernels.js",
    "failure.js",
    "problem.js",
    "main.js",
)
"""Scripts of our own, which the page joins into one in this order."""
MOST_EMBEDDED = 300
"""Most problems of a run that are in the page itself: 100 KiB each."""
STYLES = ("vendor/uplot.min.css", "page.css", "problem.css", "solutions.css")


def write_page(subject: Subject, path: Path, earlier: Sequence[Subject] = ()) -> None:
    """Write the page to a file; `earlier` are the runs to compare with, in their order.

    Raises:
        StoreError: the file cannot be written, or kept measurements cannot be read.
    """
    if path.is_dir():
        raise StoreError(f"{path}: a directory", hint="name a file with --to")
    catalogue = _measured_catalogue(subject)
    folder = path.with_name(f"{path.stem}_problems")
    is_split = len(subject.problems) > MOST_EMBEDDED
    if is_split:
        _write_problem_files(subject, times_of(catalogue), folder)
    page = _render(subject, earlier, catalogue, folder.name if is_split else "")
    write_atomically(path, page, "--to")


def render_page(subject: Subject, earlier: Sequence[Subject] = ()) -> str:
    """Return the page's text, with all problems in it; it is the same for the same files."""
    return _render(subject, earlier, _measured_catalogue(subject), "")


def _write_problem_files(subject: Subject, times: Times, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for pattern in ("problem-*.js", "folder-*.js", "failure-*.js"):
            for earlier in folder.glob(pattern):  # of a page that had more problems
                earlier.unlink()
        for name, packed in _problem_blocks(subject, times):
            (folder / f"{name}.js").write_text(f'kdrunBlock("{packed}");\n', encoding="utf-8")
    except OSError as error:
        raise unwritable_error(folder, error, "--to") from error


def _render(subject: Subject, earlier: Sequence[Subject], catalogue: Catalogue, folder: str) -> str:
    """Return the page's text; `folder` has the files of its problems, unless they are in it."""
    times = times_of(catalogue)
    evaluations, notes = read_evaluations(subject)
    subject = replace(subject, notes=(*subject.notes, *notes))
    solved = summarize_solutions(evaluations, subject, catalogue, times)
    blocks: dict[str, Any] = {
        "run": subject_data(subject, catalogue) | {"solved": solved},
        "search": [search_words(problem) for problem in subject.problems],
        "workloads": workloads_data(catalogue, subject),
    }
    if evaluations:
        blocks["solutions"] = solutions_data(evaluations, subject)
    if earlier:
        sides = [(side, _measured_catalogue(side)) for side in earlier]
        blocks["changes"] = comparison_data([*sides, (subject, catalogue)])
    packed = [_block(name, _pack(value)) for name, value in blocks.items()]
    if not folder:
        packed += [_block(name, data) for name, data in _problem_blocks(subject, times)]
    packed += [
        _block(f"library-{name}", _pack_text(_read_asset(f"vendor/{name}.min.js")))
        for name in LIBRARIES
    ]
    parts = {
        "folder": html.escape(folder),
        "title": html.escape(f"{subject.title} - kdrun"),
        "styles": "\n".join(_read_asset(name) for name in STYLES),
        "script": "\n".join(_read_asset(name) for name in OWN_SCRIPTS),
        "licences": html.escape(
            "\n\n".join(f"{n}\n\n{_read_asset(f'vendor/{n}.LICENSE')}" for n in LIBRARIES)
        ),
        "blocks": "\n".join(packed),
    }
    page = _read_asset("page.html")
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text, 1)
    return page


def _measured_catalogue(subject: Subject) -> Catalogue:
    catalogue = collect_workloads(subject)
    measurements = read_measurements(subject.place)
    return with_measurements(catalogue, measurements) if measurements else catalogue


def _problem_blocks(subject: Subject, times: Times) -> Iterator[tuple[str, str]]:
    """Yield the name of each block of a problem, and its packed data."""
    shared: dict[str, int] = {}
    for number, problem in enumerate(subject.problems):
        if problem.tree is not None:
            data = problem_data(problem, times.get(problem.label, {}))
            yield f"problem-{number}", _pack(data)
            yield f"folder-{number}", _pack(folder_data(problem, data["files"], shared))
        if problem.row.status != "passed":
            yield f"failure-{number}", _pack(failure_data(problem, subject))
    yield "shared", _pack(list(shared))


def _read_asset(name: str) -> str:
    return (resources.files("runner.report") / "assets" / name).read_text(encoding="utf-8")


def _block(name: str, packed: str) -> str:
    return f'<script type="text/plain" id="{name}">{packed}</script>'


def _pack(value: Any) -> str:
    return _pack_text(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def _pack_text(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
