"""Problems are chosen by name, glob, level or path; this file finds and orders them."""

import difflib
import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Literal, TypeVar

from runner.errors import DatasetError, UsageError
from runner.problems.problem import CUSTOM, LEVELS, Problem, find_path, identify, source_level
from runner.quantities import pluralize

KERNELBENCH = Path("data/kernelbench")
"""Where `kdrun data fetch` puts the dataset, in the working directory."""

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parent

Kind = Literal["kernelbench", "samples", "directory"]


@dataclass(frozen=True, slots=True)
class DataRoot:
    """A directory of problems: `level1/`, `level2/`, `level3/` in it, or the files themselves."""

    path: Path
    kind: Kind
    flat: bool = False
    """The files lie in the directory itself: one level, that of its own name, else `custom`."""
    beside: "DataRoot | None" = None
    """The samples, where this is KernelBench: a name that KernelBench lacks is looked for there."""

    def levels(self) -> list[int]:
        """Levels that have a problem here."""
        return [n for n in LEVELS if self.files([n])]

    def files(self, levels: Iterable[int] = ()) -> list[Path]:
        """Problem files of these levels, of all for none given, sorted."""
        wanted = {f"level{n}" for n in levels}
        folders = [self.path] if self.flat else [self.path / f"level{n}" for n in LEVELS]
        files = [f for folder in folders for f in folder.glob("*.py") if f.is_file()]
        chosen = [f for f in files if not wanted or source_level(f) in wanted]
        return sorted((f for f in chosen if f.name != "__init__.py"), key=_order)

    def __str__(self) -> str:
        what = {"kernelbench": "KernelBench", "samples": "the samples", "directory": "problems"}
        return f"{what[self.kind]} in {self.path}"


def data_root(explicit: Path | None = None) -> DataRoot:
    """Return the directory that was asked for, else KernelBench with the samples beside it, else
    the samples alone.

    KernelBench is looked for in the working directory, then in kdrun's own checkout. A directory
    that was asked for has level folders in it, a KernelBench checkout's included, or is flat.
    """
    if explicit is not None:
        return _directory(explicit)
    samples = next((DataRoot(p, "samples") for p in _samples_places() if _has_levels(p)), None)
    for base in (Path.cwd(), *([_CHECKOUT] if _is_checkout() else [])):
        if _has_levels(base / KERNELBENCH):
            return DataRoot(base / KERNELBENCH, "kernelbench", beside=samples)
    if samples is None:
        raise DatasetError("this kdrun has no samples", hint="install it again, or pass --data DIR")
    return samples


def _samples_places() -> list[Path]:
    """Return the folders that may hold the samples: the working directory's, the wheel's, ours."""
    return [Path.cwd() / "data/samples", *own_data("samples")]


def own_data(name: str) -> list[Path]:
    """Where a file or folder of this project's data/ may be: in the wheel, in the checkout."""
    return [_PACKAGE / "_data" / name, *([_CHECKOUT / "data" / name] if _is_checkout() else [])]


P = TypeVar("P", bound=PurePath)


def find_named(paths: Iterable[P], pattern: str) -> list[P]:
    """Return the paths of the problems that a name or glob means; `.py` at its end is ignored.

    A problem has its file's name (`9_ResNet18`) or its number (`9`), alone or after its level
    (`level3/9`), its set (`samples/vit_block`), or both. Case is ignored where no problem has the
    name as it is written.
    """
    paths = list(paths)
    exact = [path for path in paths if _has_name(path, pattern.removesuffix(".py"))]
    return exact or [path for path in paths if _matches(path, pattern.lower().removesuffix(".py"))]


def find_labels(labels: Iterable[str], pattern: str) -> list[str]:
    """Return the labels, such as `level3/vit_block`, that a name or glob means.

    A label does not tell the set, so `samples/` or `kernelbench/` before a name is ignored.
    """
    pattern = re.sub(r"^(samples|kernelbench)/", "", pattern, flags=re.IGNORECASE)
    return [str(path) for path in find_named(map(PurePosixPath, labels), pattern)]


def _has_name(path: PurePath, name: str) -> bool:
    stem = path.name.removesuffix(".py")
    number = re.match(r"\d+(?=_)", stem)
    own_names = (stem, *([number[0]] if number else []))
    return any(_fits(path, own, glob.escape(name)) for own in own_names)


def _matches(path: PurePath, pattern: str) -> bool:
    path = PurePosixPath(str(path).lower())
    return _has_name(path, pattern) or _fits(path, path.name.removesuffix(".py"), pattern)


def _fits(path: PurePath, own_name: str, pattern: str) -> bool:
    """Return whether a pattern matches the file's own name, alone or below its folders."""
    if not PurePosixPath(pattern).parts:
        return False
    folders = [path.parent]
    if source_level(path) != CUSTOM:
        folders.append(path.parent.parent)
    return any(PurePosixPath(str(folder / own_name)).match(pattern) for folder in folders)


def select(
    root: DataRoot,
    levels: Iterable[int] = (),
    patterns: Iterable[str] = (),
    start: int = 0,
    count: int | None = None,
) -> list[Problem]:
    """Return the selected problems, each once, in natural order: by level, number, then name.

    Levels, names and globs narrow the root's problems; a pattern that is a file's path adds that
    file, whatever the levels. `start` and `count` cut from the sorted selection. Broken files are
    selected too: they are reported as such when they are read, and stop no other.

    Raises UsageError for whatever cannot be meant, an empty selection included.
    """
    levels, patterns = list(levels), list(patterns)
    _check_numbers(start, count)
    _check_levels(root, levels)
    pool = root.files(levels)
    if not pool and not patterns:
        raise UsageError(f"no problems in {root.path}", hint="a problem is a .py file")
    chosen = [f for p in patterns for f in _matching(p, root, levels, "--problem ")] or pool
    problems = _unique(identify(file) for file in sorted(chosen, key=_order))
    if start >= len(problems):
        raise UsageError(f"--start {start} is past the end: {_problems(len(problems))} selected")
    return problems[start : None if count is None else start + count]


def select_one(pattern: str, root: DataRoot) -> Problem:
    """Return the one problem that a path, a name or a glob means.

    Raises UsageError where it means none, or several.
    """
    problems = _unique(identify(file) for file in sorted(_matching(pattern, root), key=_order))
    if len(problems) > 1:
        names = _listed([problem.path for problem in problems], most=8)
        raise UsageError(
            f"{pattern}: means {len(problems)} problems: {names}", hint="name one of them"
        )
    return problems[0]


def origin(root: DataRoot, problems: Sequence[Problem]) -> str:
    """Return in words where selected problems lie."""
    left, used = list(problems), []
    for place in _roots(root):
        outside = [one for one in left if not one.path.is_relative_to(place.path.absolute())]
        if len(outside) < len(left):
            used.append(str(place))
        left = outside
    if left:
        used.append(f"{pluralize(len(left), 'file')} named by path")
    return " and ".join(used)


def _roots(root: DataRoot) -> Iterator[DataRoot]:
    """The places where a name is looked for, in this order."""
    yield root
    if root.beside is not None:
        yield root.beside


def _directory(path: Path) -> DataRoot:
    if not path.exists():
        raise UsageError(f"--data {path}: no such directory")
    if not path.is_dir():
        raise UsageError(f"--data {path}: not a directory", hint="--problem takes a file")
    for place in (path, path / "KernelBench"):
        if _has_levels(place):
            return DataRoot(place, "directory")
    if any(path.glob("*.py")):
        return DataRoot(path, "directory", flat=True)
    raise UsageError(
        f"--data {path}: no problems there", hint="it needs level1/, level2/, level3/ or .py files"
    )


def _has_levels(path: Path) -> bool:
    return any(next((path / f"level{n}").glob("*.py"), None) for n in LEVELS)


def _is_checkout() -> bool:
    return (_CHECKOUT / "data" / "manifest.txt").is_file()


def _order(path: Path) -> tuple[str, float, list[tuple[int, int | str]], str]:
    """level1 before custom, 2_ before 10_, the numbered before the named, v2 before v10."""
    number = re.match(r"(\d+)(?=_|$)", path.stem)
    level = source_level(path)
    return (
        "~" if level == CUSTOM else level,
        int(number[1]) if number else float("inf"),
        [(0, int(t)) if t.isdigit() else (1, t) for t in re.findall(r"[0-9]+|[^0-9]+", path.stem)],
        str(path),
    )


def _check_numbers(start: int, count: int | None) -> None:
    if start < 0:
        raise UsageError(f"--start {start} is negative", hint="it counts from 0")
    if count is not None and count < 1:
        raise UsageError(f"--count {count} selects nothing", hint="it is 1 or more")


def _check_levels(root: DataRoot, levels: list[int]) -> None:
    available = root.levels()
    for level in levels:
        if level not in LEVELS:
            raise UsageError(f"there is no level {level}", hint="the levels are 1, 2 and 3")
        if level not in available:
            have = " and ".join(str(n) for n in available) or "only problems of no level"
            raise UsageError(f"no level {level} in {root.path}", hint=f"it has {have}")


def _matching(
    pattern: str, root: DataRoot, levels: Sequence[int] = (), flag: str = ""
) -> list[Path]:
    """The file that a path names, else what the first place that has the name has of it."""
    path = find_path(pattern)
    if path is not None and path.is_file():
        return [path.absolute()]
    for place in _roots(root):
        if matches := find_named(place.files(levels), pattern):
            return matches
    if path is not None and path.is_dir():
        raise UsageError(
            f"{flag}{pattern}: is a directory",
            hint=f"`kdrun submit --data {pattern}` takes all problems in it",
        )
    if path is not None:
        raise UsageError(
            f"{flag}{pattern}: not a regular file", hint="save the model in a .py file"
        )
    raise UsageError(f"{flag}{pattern}: {_why_nothing(pattern, root, levels)}")


def _why_nothing(pattern: str, root: DataRoot, levels: Sequence[int]) -> str:
    elsewhere = [f for place in _roots(root) for f in find_named(place.files(), pattern)]
    if levels and elsewhere:
        narrowed = ", ".join(str(n) for n in levels)
        return f"matches nothing in level {narrowed}, though {_listed(elsewhere)} would do"
    pools = [(place.files(levels), place.path) for place in _roots(root)]
    what = "matches none of the " + " or of the ".join(
        f"{_problems(len(pool))} in {path}" for pool, path in pools
    )
    if (pattern.endswith(".py") or "/" in pattern) and glob.escape(pattern) == pattern:
        what = f"no such file, and {what}"
    names = {file.stem.lower(): file.stem for pool, _ in pools for file in pool}
    wanted = Path(pattern).name.removesuffix(".py").strip("*").lower()
    inside = [name for lower, name in names.items() if len(wanted) > 2 and wanted in lower]
    close = inside or [names[n] for n in difflib.get_close_matches(wanted, names)]
    if close:
        what += f"; is it {' or '.join(close[:3])}?"
    if root.kind == "samples":
        what += " (`kdrun data fetch` gets KernelBench's 250)"
    return what


def _listed(files: list[Path], most: int = 3) -> str:
    shown = ", ".join(f"{source_level(f)}/{f.stem}" for f in files[:most])
    return shown if len(files) <= most else f"{shown} and {len(files) - most} more"


def _unique(problems: Iterable[Problem]) -> list[Problem]:
    """Each once. Two different files of one level and name would be written to one place."""
    seen: dict[tuple[str, str], Problem] = {}
    for problem in problems:
        other = seen.setdefault((problem.source_level, problem.name), problem)
        if other.sha256 != problem.sha256:
            raise UsageError(
                f"{other.path} and {problem.path} have the same level and name",
                hint="rename one of them",
            )
    return list(seen.values())


def _problems(n: int) -> str:
    return f"{n} problem{'' if n == 1 else 's'}"
