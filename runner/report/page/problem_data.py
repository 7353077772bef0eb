"""Collects what the page holds of one problem: its tree, files, verdicts, times, or its failure."""

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from runner.batch.child.problem_logs import LOG_PATH
from runner.emit.pages.outline import Outline, heading
from runner.report.catalogue import Timing
from runner.report.subject import ReportProblem, Subject
from runner.store.evaluation import EVALUATION_FILE
from runner.store.result import RESULT_FILE, RunOptions, sha256_of
from runner.tree.document import TREE_FILE, Node, Tree
from runner.untrusted_files import read_file, read_text

SOURCE_FILE = "original.py"
CHECKS_FILE = "verification/checks.py"
"""File that is the same in each decomposition of one version."""
UNREAD_FILES = {
    RESULT_FILE,
    EVALUATION_FILE,
    TREE_FILE,
    LOG_PATH,
    "verification/test_results.json",
    "verification/step_verification_summary.json",
    "verification/coverage_summary.json",
    "decomposition_log.json",
    "decomposition_analysis.md",
}
"""Files that `kdrun verify` does not read: how this run's verification ended, pages for people,
solutions."""
UNREAD_STEP_FILES = {"verification_result.json", "coverage_report.json"}
_NODES = TypeAdapter(dict[str, Node])
LONGEST_LOG = 60_000
"""Most characters of a log that the page holds, from its end."""


def problem_data(problem: ReportProblem, times: Mapping[str, Timing]) -> dict[str, Any]:
    """Return what the page shows when somebody opens a problem that has a tree.

    `times` has the measured time of each kernel, by its path.
    """
    assert problem.tree is not None
    tree = problem.tree
    paths = sorted({node.path for node in tree.nodes.values()})
    first_nodes = {node.path: node for node in reversed(tree.nodes.values())}
    return {
        "about": tree.metadata.model_dump(mode="json", exclude_defaults=True)
        | {"mode": tree.metadata.mode},
        "nodes": {
            name: {"flops": 0, "bytes": 0} | node  # The page adds these up.
            for name, node in _NODES.dump_python(
                tree.nodes, exclude={"__all__": {"id"}}, exclude_defaults=True
            ).items()
        },
        "titles": {path: heading(first_nodes[path]) for path in paths},
        "rows": dict(_repeated_rows(tree)),
        "flow": [[e.source, e.target, e.tensor_name, e.shape, e.dtype] for e in tree.data_flow],
        "files": dict(_read_texts(problem.directory, [SOURCE_FILE, *paths])),
        "gates": _read_gates(problem.directory),
        "times": {
            path: [time.median_s, time.fastest_s, time.slowest_s]
            for path in paths
            if (time := times.get(path))
        },
    }


def folder_data(
    problem: ReportProblem, files: Mapping[str, str], shared: dict[str, int]
) -> dict[str, str | int | list[str]]:
    """Return the problem's other files: what `kdrun verify` reads besides the components.

    A text is in a list of its own; a string names the file that has the same text, and a number
    stands for the text in `shared`, which gets those that are equal in most problems.
    """
    paths = {text: path for path, text in files.items()}
    folder: dict[str, str | int | list[str]] = {}
    for path in sorted(problem.directory.rglob("*")):
        name = path.relative_to(problem.directory).as_posix()
        if not _is_read_by_verify(name, path) or name in files:
            continue
        try:
            text = read_text(path)
        except (OSError, UnicodeDecodeError):
            continue
        if name == CHECKS_FILE:
            folder[name] = shared.setdefault(text, len(shared))
            continue
        folder[name] = paths.get(text) or [text]
        paths.setdefault(text, name)
    return folder


def failure_data(problem: ReportProblem, subject: Subject) -> dict[str, Any]:
    """Return what explains a problem that did not pass: its source, its log, how to repeat it."""
    source = _find_source(problem, subject)
    return {
        "log": _read_log(problem, subject),
        "source": read_file(source).decode(errors="replace") if source else None,
        "command": _command(problem, subject, source),
    }


def _repeated_rows(tree: Tree) -> Iterator[tuple[str, list[Any]]]:
    """Yield the rows of each parent in which equal children share one: [turns, [ids, ...]]."""
    outline = Outline(tree)
    for node in tree.nodes.values():
        if len(node.children) < 2:
            continue
        rows = outline.rows_of_equals(node)
        if any(row.count > 1 or len(row.items[0].nodes) > 1 for row in rows):
            yield (
                node.id,
                [[row.count, [[n.id for n in item.nodes] for item in row.items]] for row in rows],
            )


def _is_read_by_verify(name: str, path: Path) -> bool:
    return (
        path.is_file()
        and name not in UNREAD_FILES
        and path.name not in UNREAD_STEP_FILES
        and "__pycache__" not in path.parts
        and path.suffix in {".py", ".json"}
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


# --- a failure ------------------------------------------------------------------------------------


def _find_source(problem: ReportProblem, subject: Subject) -> Path | None:
    """Return the problem's file as the run read it; None if it is not here or has been changed."""
    candidates = [problem.directory / SOURCE_FILE]
    if subject.manifest:
        named = subject.manifest.arguments.get("problem") or []
        data = Path(subject.manifest.data)
        candidates += [data / f"{problem.label}.py", data / f"{problem.row.problem}.py"]
        candidates += [Path(name) for name in named if Path(name).stem == problem.row.problem]
    digest = problem.result.source_sha256 if problem.result else None
    if digest is not None:  # `kdrun decompose bad.py` may have been run here.
        candidates.append(Path(f"{problem.row.problem}.py"))
    for candidate in candidates:
        if candidate.is_file() and digest in (None, sha256_of(candidate)):
            return candidate
    return None


def _read_log(problem: ReportProblem, subject: Subject) -> str | None:
    paths = [problem.directory / LOG_PATH]
    if subject.manifest:
        paths.append(subject.place / "logs" / f"{problem.label}.log")
    else:
        paths.append(problem.directory.resolve().parents[1] / "logs" / f"{problem.label}.log")
    for path in paths:
        try:
            text = read_file(path).decode(errors="replace")
        except OSError:
            continue
        return text[-LONGEST_LOG:]
    return None


def _command(problem: ReportProblem, subject: Subject, source: Path | None) -> str:
    """Return the command that does the problem again, by itself, with the options of the run."""
    options = problem.result.options if problem.result else RunOptions()
    flags = []
    for name in ("mode", "device", "trials"):
        if getattr(options, name) != RunOptions.model_fields[name].default:
            flags += [f"--{name}", str(getattr(options, name))]
    flags += ["--power"] if options.power else []
    if options.decomposer is None and source is not None:
        return shlex.join(["kdrun", "decompose", str(source), *flags])
    if subject.manifest is None:
        is_file = problem.row.source_level == "custom"  # which no dataset has
        name = f"{problem.row.problem}.py" if is_file else problem.label
        return shlex.join(["kdrun", "decompose", name, *flags])
    name, run = problem.row.problem, subject.manifest.run_id
    return shlex.join(["kdrun", "submit", "--problem", name, "--run-id", run, "--no-resume"])
