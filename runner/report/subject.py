"""Reads the subject of a report: a run, an output directory, or one decomposition.

A file that cannot be read becomes a sentence in the notes, so that an unfinished run, or one with
lost files, is reported as far as its files exist.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from runner.batch import stored_results
from runner.config import Settings
from runner.errors import DecompositionError, UsageError
from runner.problems import natural_sort_key
from runner.quantities import pluralize
from runner.store.directory import RUNS, DirectoryStore, read_manifest
from runner.store.manifest import MANIFEST_FILE, Manifest
from runner.store.manifest_row import Row
from runner.store.result import RESULT_FILE, ProblemResult, sha256_of
from runner.tree.document import TREE_FILE, Tree
from runner.tree.version_1 import read_any_version


@dataclass(frozen=True, slots=True)
class ReportProblem:
    """A problem of the subject, with the files of it that exist."""

    row: Row
    directory: Path
    """Directory of its decomposition, which may not exist."""
    tree: Tree | None
    result: ProblemResult | None
    missing: str | None = None
    """Sentence that says which file is missing; None if none is."""
    later: bool = False
    """Whether a later run has replaced the files."""

    @property
    def label(self) -> str:
        return self.row.label


@dataclass(frozen=True, slots=True)
class Subject:
    """The problems that a report shows together."""

    title: str
    place: Path
    """Directory of the run, or the directory that was named."""
    manifest: Manifest | None
    """Manifest of a run; None for a directory."""
    problems: tuple[ReportProblem, ...]
    notes: tuple[str, ...]
    """Warnings for the reader of the report, a sentence each."""

    @property
    def decompositions(self) -> tuple[ReportProblem, ...]:
        return tuple(problem for problem in self.problems if problem.tree is not None)


@contextmanager
def open_subject(name: str, settings: Settings) -> Iterator[Subject]:
    """Yield the subject that `RUN|DIR` names on this machine, or else in the store.

    A run from the store is pulled into a temporary directory, which is deleted at the end. Problems
    that the store lacks or has damaged are named in the notes.

    Raises:
        KdrunError: as `find_subject` and `stored_results.pull_results` do.
    """
    is_local = Path(name).exists() or (settings.output / "runs" / name / MANIFEST_FILE).exists()
    if settings.store is None or is_local:
        yield find_subject(name, settings.output)
        return
    with tempfile.TemporaryDirectory(prefix="kdrun-") as aside:
        outcomes = stored_results.pull_results(settings, name, Path(aside), lambda outcome: None)
        subject = find_subject(name, Path(aside))
        failures = [outcome for outcome in outcomes if not outcome.is_present]
        notes = subject.notes
        if failures:
            first = failures[0]
            failure = f"{first.label}: {first.state} {first.detail}".rstrip()
            notes = (*notes, f"The store lacks {pluralize(len(failures), 'problem')}: {failure}.")
        yield replace(subject, place=Path(), notes=notes)


def find_subject(name: str, output: Path) -> Subject:
    """Return the subject that `RUN|DIR` names: a run's id in the output directory, or a directory.

    A directory is a decomposition, a run's directory with its manifest, or a directory that has
    decompositions at `<problem>` or `<source level>/<problem>`. If all of these belong to one run,
    as after a pull, the subject is that run.

    Raises:
        UsageError: the name is none of these.
        StoreError: the run's manifest cannot be read.
        DecompositionError: the single decomposition cannot be read.
    """
    path = Path(name)
    if path.is_dir():
        is_tree = (path / TREE_FILE).exists()
        if is_tree or ProblemResult.find(path) is not None:  # An attempt may have made no tree.
            problem = _describe_directory(path, read_any_version(path) if is_tree else None)
            return Subject(problem.label, path, None, (problem,), ())
        if (path / MANIFEST_FILE).exists():
            root = path.parent.parent if path.absolute().parent.name == RUNS else path
            return _read_run(read_manifest(path / MANIFEST_FILE), path, root)
        return _only_run(path) or _read_directory(path)
    if path.exists():
        raise UsageError(f"{name}: a file", hint="name a run or a directory")
    if "/" in name:
        raise UsageError(f"{name}: no such directory", hint="name a run or a directory")
    store = DirectoryStore(output)
    return _read_run(store.manifest(name), store.run_directory(name), output)


def _find_decompositions(path: Path) -> list[Path]:
    """Return the decompositions in a level folder, or in an output directory's level folders."""

    def subfolders(folder: Path) -> list[Path]:
        folders = [p for p in sorted(folder.iterdir()) if p.is_dir() and not p.name.startswith(".")]
        return [p for p in folders if p.name != RUNS]

    def decompositions_in(folder: Path) -> list[Path]:
        files = (TREE_FILE, RESULT_FILE)
        return [p for p in subfolders(folder) if any((p / file).is_file() for file in files)]

    return decompositions_in(path) or [
        folder for level in subfolders(path) for folder in decompositions_in(level)
    ]


def _only_run(path: Path) -> Subject | None:
    store = DirectoryStore(path)
    ids = store.run_ids()
    if len(ids) != 1:
        return None
    manifest = store.manifest(ids[0])
    rows = {row.label for row in manifest.rows}
    if any(
        f"{folder.parent.name}/{folder.name}" not in rows for folder in _find_decompositions(path)
    ):
        return None
    return _read_run(manifest, store.run_directory(ids[0]), path)


def _read_directory(path: Path) -> Subject:
    folders = _find_decompositions(path)
    if not folders:
        raise UsageError(
            f"{path}: no decomposition, no run, and none in it",
            hint="name what `kdrun decompose` or `kdrun submit` wrote",
        )
    problems = _sort(_describe_directory(folder, *_read_tree(folder)) for folder in folders)
    return Subject(path.resolve().name, path, None, problems, tuple(_missing_notes(problems)))


def _read_run(manifest: Manifest, path: Path, root: Path) -> Subject:
    problems = _sort(_read_problem(row, manifest, path, root) for row in manifest.rows)
    return Subject(manifest.run_id, path, manifest, problems, tuple(_run_notes(manifest, problems)))


def _read_problem(row: Row, manifest: Manifest, path: Path, root: Path) -> ReportProblem:
    candidates = (path / row.label, root / row.label, root / manifest.run_id / row.label)
    directory = next((candidate for candidate in candidates if candidate.is_dir()), candidates[1])
    if row.result_sha256 is None:
        return ReportProblem(row, directory, None, None)
    tree, missing = _read_tree(directory)
    if row.figures is None:
        missing = None
    result_file = directory / RESULT_FILE
    if not result_file.is_file():
        missing = missing or f"no {RESULT_FILE} in it"
    later = result_file.is_file() and sha256_of(result_file) != row.result_sha256
    return ReportProblem(row, directory, tree, ProblemResult.find(directory), missing, later)


def _run_notes(manifest: Manifest, problems: tuple[ReportProblem, ...]) -> Iterator[str]:
    count = manifest.selected - len(manifest.rows)
    state = manifest.state_now()
    if state == "running":
        yield (
            f"The run is still going: {pluralize(count, 'problem')} of {manifest.selected} to come."
        )
    elif count:
        yield f"The run was {state}: {pluralize(count, 'problem')} of {manifest.selected} not run."
    yield from _missing_notes(problems)
    if replaced := [problem.label for problem in problems if problem.later]:
        suffix = f", and {len(replaced) - 1} more" if len(replaced) > 1 else ""
        yield f"Shown as a later run made it: {replaced[0]}{suffix}."


def _missing_notes(problems: tuple[ReportProblem, ...]) -> Iterator[str]:
    incomplete = [problem for problem in problems if problem.missing]
    if incomplete:
        first = incomplete[0]
        suffix = f", and {len(incomplete) - 1} more" if len(incomplete) > 1 else ""
        yield f"Not all is there: {first.label}: {first.missing}{suffix}."


def _read_tree(directory: Path) -> tuple[Tree | None, str | None]:
    try:
        return read_any_version(directory), None
    except DecompositionError as error:
        return None, error.message
    except OSError as error:
        return None, f"{directory}: {error.strerror}"


def _describe_directory(path: Path, tree: Tree | None, missing: str | None = None) -> ReportProblem:
    """Return the problem of a directory by the directory's name, with its result if it has one."""
    name, result = path.resolve().name, ProblemResult.find(path)
    if result is not None:
        row = Row.from_result(result, attempts=0, result_sha256=None)
        row = row.model_copy(update={"problem": name})
        return ReportProblem(row, path, tree, result, missing if row.figures is not None else None)
    has_failed = missing or (tree and tree.metadata.verification_status == "failed")
    row = Row(
        problem=name,
        source_level=tree.metadata.source_level if tree else path.resolve().parent.name,
        status="failed" if has_failed else "cancelled",
        reason=missing or "not verified: no result.json in it",
    )
    return ReportProblem(row, path, tree, None)


def _sort(problems: Iterable[ReportProblem]) -> tuple[ReportProblem, ...]:
    return tuple(sorted(problems, key=lambda problem: natural_sort_key(problem.label)))
