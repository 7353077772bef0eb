"""This file knows about choosing problems: where they lie, their order, which are meant."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from runner.errors import DatasetError, UsageError
from runner.problems.problem import CUSTOM, LEVELS, Problem, identify, source_level

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
    """Where the problems are: the directory that was asked for, else KernelBench, else the samples.

    KernelBench is looked for in the working directory, then in kdrun's own checkout. A directory
    that was asked for has level folders in it, a KernelBench checkout's included, or is flat.
    """
    if explicit is not None:
        return _directory(explicit)
    for base in (Path.cwd(), _CHECKOUT):
        if base == _CHECKOUT and not _is_checkout():
            continue
        if _has_levels(base / KERNELBENCH):
            return DataRoot(base / KERNELBENCH, "kernelbench")
    return DataRoot(samples_directory(), "samples")


def samples_directory() -> Path:
    """This project's own problems: the working directory's, the checkout's, or the wheel's."""
    places = [Path.cwd() / "data/samples", *own_data("samples")]
    for place in places:
        if _has_levels(place):
            return place
    raise DatasetError("this kdrun has no samples", hint="install it again, or pass --data DIR")


def own_data(name: str) -> list[Path]:
    """Where a file or folder of this project's data/ may be: in the wheel, in the checkout."""
    return [_PACKAGE / "_data" / name, *([_CHECKOUT / "data" / name] if _is_checkout() else [])]


def select(
    roots: DataRoot,
    levels: Iterable[int] = (),
    patterns: Iterable[str] = (),
    start: int = 0,
    count: int | None = None,
) -> list[Problem]:
    """The problems that are meant, each once, in natural order: by level, number, then name.

    Levels and globs narrow the root's problems; a pattern that is a file's path adds that file,
    whatever the levels. `start` and `count` cut from the sorted selection. Broken files are
    selected too: they are reported as such when they are read, and stop no other.

    Raises UsageError for whatever cannot be meant, an empty selection included.
    """
    levels, patterns = list(levels), list(patterns)
    _check_numbers(start, count)
    _check_levels(roots, levels)
    pool = roots.files(levels)
    if not pool and not patterns:
        raise UsageError(f"no problems in {roots.path}", hint="a problem is a .py file")
    chosen = [f for p in patterns for f in _matching(p, pool, roots, levels)] if patterns else pool
    problems = _unique(identify(file) for file in sorted(chosen, key=_order))
    if start >= len(problems):
        raise UsageError(f"--start {start} is past the end: {_problems(len(problems))} selected")
    return problems[start : None if count is None else start + count]


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


def _matching(pattern: str, pool: list[Path], root: DataRoot, levels: list[int]) -> list[Path]:
    matches = [f for f in pool if _matches(f, pattern)]
    if matches and not Path(pattern).is_file():
        return matches
    path = Path(pattern).expanduser()
    if path.is_file():
        return [path.absolute()]
    if path.is_dir():
        raise UsageError(
            f"--problem {pattern}: is a directory", hint=f"--data {pattern} takes all in it"
        )
    raise UsageError(f"--problem {pattern}: {_why_nothing(pattern, pool, root, levels)}")


def _matches(file: Path, pattern: str) -> bool:
    """By name, with or without .py, with or without the folder of its level before it."""
    names = (file.stem, file.name, f"{file.parent.name}/{file.stem}")
    return any(
        name == pattern or fnmatchcase(name, pattern)
        for name in (*names, f"{file.parent.name}/{file.name}")
    )


def _why_nothing(pattern: str, pool: list[Path], root: DataRoot, levels: list[int]) -> str:
    elsewhere = [f for f in root.files() if _matches(f, pattern)]
    if levels and elsewhere:
        narrowed = ", ".join(str(n) for n in levels)
        return f"matches nothing in level {narrowed}, though {_listed(elsewhere)} would do"
    what = f"matches none of the {_problems(len(pool))} in {root.path}"
    if pattern.endswith(".py") and "/" in pattern:
        what = f"no such file, and {what}"
    names = {f.stem.lower(): f.stem for f in pool}
    wanted = Path(pattern).name.removesuffix(".py").strip("*").lower()
    inside = [name for lower, name in names.items() if len(wanted) > 2 and wanted in lower]
    close = inside or [names[n] for n in difflib.get_close_matches(wanted, names)]
    return f"{what}; is it {' or '.join(close[:3])}?" if close else what


def _listed(files: list[Path]) -> str:
    shown = ", ".join(f"{f.parent.name}/{f.stem}" for f in files[:3])
    return shown if len(files) <= 3 else f"{shown} and {len(files) - 3} more"


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
