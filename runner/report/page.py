"""Writes the report: one web page that holds a run, its problems and all their files.

The page needs no network. The data of each problem are packed (gzip, base64), and the browser
unpacks them when the problem is opened, so that a page of hundreds of problems loads at once.
"""

import base64
import gzip
import html
import json
from collections.abc import Iterator
from datetime import timedelta
from importlib import resources
from pathlib import Path
from typing import Any

from runner import __version__
from runner.errors import DecompositionError, StoreError
from runner.report.catalogue import Catalogue, collect_workloads, sort_catalogue
from runner.report.subject import ReportProblem, Subject
from runner.store.directory import write_atomically
from runner.store.evaluation import Evaluation
from runner.store.manifest import Manifest
from runner.tree.document import ROOT, Node
from runner.untrusted_files import read_file, read_text

SCRIPTS = (
    "vendor/cytoscape.min.js",
    "vendor/dagre.min.js",
    "vendor/uplot.min.js",
    "vendor/highlight.min.js",
)
OWN_SCRIPTS = (
    "elements.js",
    "overview.js",
    "workloads.js",
    "outline.js",
    "graph.js",
    "evaluation.js",
    "details.js",
    "problem.js",
    "main.js",
)
"""Scripts of our own, which the page joins into one in this order."""
STYLES = ("vendor/uplot.min.css", "page.css")

LISTED_WORKLOADS = 500
CURVE_POINTS = 400


def write_page(subject: Subject, path: Path) -> None:
    """Write the page to a file.

    Raises:
        StoreError: the file cannot be written.
    """
    if path.is_dir():
        raise StoreError(f"{path}: a directory", hint="name a file with --to")
    write_atomically(path, render_page(subject), "--to")


def render_page(subject: Subject) -> str:
    """Return the page's text, which is the same for the same files."""
    catalogue = collect_workloads(subject)
    problem_scripts = [
        f'<script type="text/plain" id="problem-{number}">{_pack(_problem_data(problem))}</script>'
        for number, problem in enumerate(subject.problems)
        if problem.tree is not None
    ]
    parts = {
        "title": html.escape(f"{subject.title} - kdrun"),
        "styles": "\n".join(_read_asset(name) for name in STYLES),
        "libraries": "\n".join(f"<script>{_read_asset(name)}</script>" for name in SCRIPTS),
        "script": "\n".join(_read_asset(name) for name in OWN_SCRIPTS),
        "licences": html.escape("\n\n".join(map(_read_licence, SCRIPTS))),
        "run": _embed(_subject_data(subject)),
        "workloads": _pack(_workloads_data(catalogue)),
        "problems": "\n".join(problem_scripts),
    }
    page = _read_asset("page.html")
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text, 1)
    return page


def _read_asset(name: str) -> str:
    return (resources.files("runner.report") / "assets" / name).read_text(encoding="utf-8")


def _read_licence(script: str) -> str:
    name = Path(script).name.partition(".")[0]
    return f"{name}\n\n{_read_asset(f'vendor/{name}.LICENSE')}"


def _embed(value: Any) -> str:
    """Return JSON for a script element; `<` is escaped, so that no text in it ends the element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _pack(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


# --- data of the first view -----------------------------------------------------------------------


def _subject_data(subject: Subject) -> dict[str, Any]:
    return {
        "title": subject.title,
        "version": __version__,
        "notes": subject.notes,
        "run": _run_data(subject.manifest) if subject.manifest else None,
        "problems": [_row_data(problem) for problem in subject.problems],
    }


def _run_data(manifest: Manifest) -> dict[str, Any]:
    wall = (manifest.finished - manifest.started).total_seconds() if manifest.finished else None
    return {
        "id": manifest.run_id,
        "state": manifest.state_now(),
        "started": f"{manifest.started:%Y-%m-%d %H:%M} UTC",
        "wall_s": wall,
        "selected": manifest.selected,
        "data": manifest.data,
        "versions": manifest.versions,
        "options": {k: v for k, v in manifest.arguments.items() if v not in (None, [], False)},
    }


def _row_data(problem: ReportProblem) -> dict[str, Any]:
    row, tree = problem.row, problem.tree
    return {
        "label": problem.label,
        "name": row.problem,
        "level": row.source_level,
        "status": row.status,
        "reason": row.reason,
        "stage": problem.result.stage if problem.result else None,
        "ended": _end_time(problem),
        "missing": problem.missing,
        "later": problem.later,
        "health": row.health,
        "bitwise": row.bitwise_equal,
        "seconds": row.seconds,
        "memory": row.peak_memory_bytes,
        "attempts": row.attempts,
        "node": row.node,
        "opens": tree is not None,
        "components": tree.metadata.total_components if tree else None,
        "levels": dict(tree.metadata.by_level) if tree else None,
        "kernels": tree.metadata.unique_kernels if tree else None,
        "instances": tree.metadata.kernel_instances if tree else None,
        "flops": tree.nodes[ROOT].flops if tree else None,
    }


def _end_time(problem: ReportProblem) -> str | None:
    if problem.result is None:
        return None
    return (problem.result.started + timedelta(seconds=problem.result.total_s)).isoformat()


def _workloads_data(catalogue: Catalogue) -> dict[str, Any]:
    return {
        "count": len(catalogue.workloads),
        "problems": catalogue.problems,
        "instances": catalogue.instances,
        "curves": {
            "FLOPs": _curve(catalogue),
            "bytes moved": _curve(sort_catalogue(catalogue, "bytes")),
        },
        "listed": [
            {
                "name": row.name,
                "operation": row.operation,
                "family": row.family,
                "inputs": list(row.input_shapes.values()),
                "input_dtypes": list(row.input_dtypes.values()),
                "outputs": list(row.output_shapes.values()),
                "flops": row.flops,
                "bytes": row.bytes,
                "intensity": row.intensity,
                "instances": row.instances,
                "share": row.share,
                "cumulative": row.cumulative,
                "uses": [[use.problem, use.places[0], use.instances] for use in row.uses],
            }
            for row in catalogue.workloads[:LISTED_WORKLOADS]
        ],
        "families": [family.model_dump() for family in catalogue.families],
    }


def _curve(catalogue: Catalogue) -> list[list[float]]:
    """Return pairs [workloads, share]: each of the first hundred, then every `step`-th."""
    cumulative = [row.cumulative for row in catalogue.workloads]
    total = len(cumulative)
    step = max(1, total // CURVE_POINTS)
    points = [n for n in range(1, total + 1) if n <= 100 or n % step == 0 or n == total]
    return [[n, round(cumulative[n - 1], 5)] for n in points]


# --- data of one problem --------------------------------------------------------------------------


def _problem_data(problem: ReportProblem) -> dict[str, Any]:
    assert problem.tree is not None
    tree = problem.tree
    paths = sorted({node.path for node in tree.nodes.values()})
    return {
        "about": tree.metadata.model_dump(mode="json"),
        "nodes": {identity: _node_data(node) for identity, node in tree.nodes.items()},
        "flow": [[e.source, e.target, e.tensor_name, e.shape, e.dtype] for e in tree.data_flow],
        "files": dict(_read_texts(problem.directory, ["original.py", *paths])),
        "gates": _read_gates(problem.directory),
        "evaluation": _read_evaluation(problem.directory),
    }


def _read_evaluation(directory: Path) -> dict[str, Any] | None:
    """Return what `kdrun evaluate` wrote; None if it wrote nothing that can be read."""
    try:
        evaluation = Evaluation.read(directory)
    except DecompositionError:
        return None
    return evaluation.model_dump(mode="json", exclude_none=True) if evaluation else None


def _node_data(node: Node) -> dict[str, Any]:
    left_out = {"id", "operations", "identity", "family", "groups"}
    return {"flops": node.flops, "bytes": node.bytes} | node.model_dump(
        exclude=left_out, exclude_defaults=True
    )


def _read_texts(directory: Path, names: list[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        try:
            yield name, read_file(directory / name).decode(errors="replace")
        except OSError as error:
            yield name, f"# {name} cannot be read: {error.strerror}\n"


def _read_gates(directory: Path) -> list[dict[str, Any]]:
    """Return the gates from verification's results; empty if there are none that can be read."""
    try:
        text = read_text(directory / "verification/test_results.json")
        gates = json.loads(text)["gates"]
        return [
            {
                "gate": gate["gate"],
                "verdict": gate["verdict"],
                "checks": [
                    [check["component"], check["verdict"], check["reason"], check["max_diff"]]
                    for check in gate["checks"]
                ],
            }
            for gate in gates
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []
