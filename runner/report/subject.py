"""Reads the subject of a report: a run, an output directory, or one decomposition.

A file that cannot be read becomes a sentence in the notes, so that an unfinished run, or one with
lost files, is reported as far as its files exist.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runner.errors import DecompositionError, StoreError, UsageError
from runner.quantities import counted
from runner.store.directory import RUNS, DirectoryStore
from runner.store.manifest import MANIFEST_FILE, Manifest
from runner.store.manifest_row import Row
from runner.store.result import RESULT_FILE, ProblemResult, sha256_of
from runner.tree.document import TREE_FILE, Tree
from runner.tree.version_1 import read_any_version


@dataclass(frozen=True, slots=True)
class Found:
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
    problems: tuple[Found, ...]
    notes: tuple[str, ...]
    """Warnings for the reader of the report, a sentence each."""

    @property
    def decomposed(self) -> tuple[Found, ...]:
        return tuple(found for found in self.problems if found.tree is not None)


def find(what: str, output: Path) -> Subject:
    """Return the subject that `RUN|DIR` names: a run's id in the output directory, or a directory.

    A directory is a decomposition, a run's directory with its manifest, or a directory that has
    decompositions at `<problem>` or `<source level>/<problem>`. If all of these belong to one run,
    as after a pull, the subject is that run.

    Raises:
        UsageError: the name is none of these.
        StoreError: the run's manifest cannot be read.
        DecompositionError: the single decomposition cannot be read.
    """
    path = Path(what)
    if path.is_dir():
        if (path / TREE_FILE).exists():
            return _one(path)
        if (path / MANIFEST_FILE).exists():
            return _run(_manifest(path), path, _root(path))
        return _only_run(path) or _directory(path)
    if path.exists():
        raise UsageError(f"{what}: a file", hint="name a run or a directory")
    if "/" in what:
        raise UsageError(f"{what}: no such directory", hint="name a run or a directory")
    store = DirectoryStore(output)
    return _run(store.manifest(what), store.run_directory(what), output)


def _one(path: Path) -> Subject:
    found = Found(_row(path, tree := read_any_version(path)), path, tree, _result(path))
    return Subject(found.label, path, None, (found,), ())


def _places(path: Path) -> list[Path]:
    """Return the decompositions in a level folder, or in an output directory's level folders."""

    def within(folder: Path) -> list[Path]:
        parts = [p for p in sorted(folder.iterdir()) if p.is_dir() and not p.name.startswith(".")]
        return [p for p in parts if p.name != RUNS]

    def ended(folder: Path) -> list[Path]:
        files = (TREE_FILE, RESULT_FILE)
        return [p for p in within(folder) if any((p / file).is_file() for file in files)]

    return ended(path) or [place for level in within(path) for place in ended(level)]


def _only_run(path: Path) -> Subject | None:
    store = DirectoryStore(path)
    ids = store.run_ids()
    if len(ids) != 1:
        return None
    manifest = store.manifest(ids[0])
    rows = {row.label for row in manifest.rows}
    if any(f"{place.parent.name}/{place.name}" not in rows for place in _places(path)):
        return None
    return _run(manifest, store.run_directory(ids[0]), path)


def _directory(path: Path) -> Subject:
    places = _places(path)
    if not places:
        raise UsageError(
            f"{path}: no decomposition, no run, and none in it",
            hint="name what `kdrun decompose` or `kdrun submit` wrote",
        )
    problems = []
    for place in places:
        tree, missing = _tree(place)
        row = _row(place, tree, missing)
        missing = missing if _has_tree(row) else None
        problems.append(Found(row, place, tree, _result(place), missing))
    found = tuple(sorted(problems, key=_order))
    return Subject(path.resolve().name, path, None, found, tuple(_lost(found)))


def _run(manifest: Manifest, path: Path, root: Path) -> Subject:
    problems = tuple(
        sorted((_of_row(row, manifest, path, root) for row in manifest.rows), key=_order)
    )
    return Subject(manifest.run_id, path, manifest, problems, tuple(_said(manifest, problems)))


def _of_row(row: Row, manifest: Manifest, path: Path, root: Path) -> Found:
    places = (path / row.label, root / row.label, root / manifest.run_id / row.label)
    directory = next((place for place in places if place.is_dir()), places[1])
    if row.result_sha256 is None:
        return Found(row, directory, None, None)
    tree, missing = _tree(directory)
    if not _has_tree(row):
        missing = None
    result_file = directory / RESULT_FILE
    if not result_file.is_file():
        missing = missing or f"no {RESULT_FILE} in it"
    later = result_file.is_file() and sha256_of(result_file) != row.result_sha256
    return Found(row, directory, tree, _result(directory), missing, later)


def _manifest(path: Path) -> Manifest:
    # The directory may have been moved or renamed: the manifest in it is read, whatever its run id.
    aside = DirectoryStore(path.parent.parent)
    if path.parent.name == RUNS:
        return aside.manifest(path.name)
    try:
        return Manifest.model_validate_json((path / MANIFEST_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{path / MANIFEST_FILE}: not a readable manifest", hint="pull or submit it again"
        ) from error


def _root(path: Path) -> Path:
    return path.parent.parent if path.absolute().parent.name == RUNS else path


def _said(manifest: Manifest, problems: tuple[Found, ...]) -> Iterator[str]:
    left = manifest.selected - len(manifest.rows)
    state = manifest.state_now()
    if state == "running":
        yield f"The run is still going: {counted(left, 'problem')} of {manifest.selected} to come."
    elif left:
        yield f"The run was {state}: {counted(left, 'problem')} of {manifest.selected} not run."
    yield from _lost(problems)
    if later := [found.label for found in problems if found.later]:
        more = f", and {len(later) - 1} more" if len(later) > 1 else ""
        yield f"Shown as a later run made it: {later[0]}{more}."


def _lost(problems: tuple[Found, ...]) -> Iterator[str]:
    lost = [found for found in problems if found.missing]
    if lost:
        first = lost[0]
        more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
        yield f"Not all is there: {first.label}: {first.missing}{more}."


def _has_tree(row: Row) -> bool:
    return row.figures is not None


def _tree(directory: Path) -> tuple[Tree | None, str | None]:
    try:
        return read_any_version(directory), None
    except DecompositionError as error:
        return None, error.message
    except OSError as error:
        return None, f"{directory}: {error.strerror}"


def _result(directory: Path) -> ProblemResult | None:
    try:
        return ProblemResult.from_directory(directory)
    except StoreError:
        return None


def _row(path: Path, tree: Tree | None, missing: str | None = None) -> Row:
    """Return a row for a directory, from its result if it has one, with the directory's name."""
    name = path.resolve().name
    result = _result(path)
    if result is not None:
        row = Row.from_result(result, attempts=0, result_sha256=None)
        return row.model_copy(update={"problem": name})
    return Row(
        problem=name,
        source_level=tree.metadata.source_level if tree else path.resolve().parent.name,
        status="failed" if missing or (tree and _failed(tree)) else "cancelled",
        reason=missing or "not verified: no result.json in it",
    )


def _failed(tree: Tree) -> bool:
    return tree.metadata.verification_status == "failed"


def _order(found: Found) -> tuple[str, int, str]:
    digits = found.row.problem.partition("_")[0]
    return (found.row.source_level, int(digits) if digits.isdecimal() else 10**9, found.label)
