"""Finds problems by name, glob, level or path, and sorts them."""

import difflib
import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Literal, TypeVar

from runner.errors import DatasetError, UsageError
from runner.problems.problem import (
    CUSTOM,
    LEVELS,
    Problem,
    find_path,
    identify_problem,
    source_level,
)
from runner.quantities import join_first, pluralize

KERNELBENCH = Path("data/kernelbench")
"""Path of the dataset that `kdrun data fetch` writes, in the working directory."""

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parent

Kind = Literal["kernelbench", "samples", "directory"]


@dataclass(frozen=True, slots=True)
class DataRoot:
    """A directory of problems: with `level1/`, `level2/`, `level3/`, or with the files itself."""

    path: Path
    kind: Kind
    flat: bool = False
    """Whether the files lie in the directory itself; their level is its name, else `custom`."""
    samples: "DataRoot | None" = None
    """The samples, if this is KernelBench: names that KernelBench lacks are looked up there."""

    def levels(self) -> list[int]:
        """Return the levels that have a problem here."""
        return [n for n in LEVELS if self.files([n])]

    def files(self, levels: Iterable[int] = ()) -> list[Path]:
        """Return the problem files of these levels (none: of all), sorted."""
        level_names = {f"level{n}" for n in levels}
        folders = [self.path] if self.flat else [self.path / f"level{n}" for n in LEVELS]
        files = [f for folder in folders for f in folder.glob("*.py") if f.is_file()]
        chosen = [f for f in files if not level_names or source_level(f) in level_names]
        return _sort_files(f for f in chosen if f.name != "__init__.py")

    def ignored_files(self) -> list[Path]:
        """Return the problem files that lie beside the level folders, and are not read."""
        if self.flat or self.kind != "directory":
            return []
        files = [f for f in sorted(self.path.glob("*.py")) if f.is_file()]
        return [f for f in files if b"class Model" in f.read_bytes()]

    def __str__(self) -> str:
        descriptions = {
            "kernelbench": "KernelBench",
            "samples": "the samples",
            "directory": "problems",
        }
        return f"{descriptions[self.kind]} in {self.path}"


def data_root(explicit: Path | None = None) -> DataRoot:
    """Return the explicit directory, else KernelBench and the samples, else the samples.

    KernelBench is looked for in the working directory, then in kdrun's own checkout. An explicit
    directory has level folders, is a KernelBench checkout, or has problem files itself.
    """
    if explicit is not None:
        return _explicit_root(explicit)
    folders = [Path.cwd() / "data/samples", *own_data_paths("samples")]
    samples = next((DataRoot(p, "samples") for p in folders if _has_levels(p)), None)
    for base in (Path.cwd(), *([_CHECKOUT] if _is_checkout() else [])):
        if _has_levels(base / KERNELBENCH):
            return DataRoot(base / KERNELBENCH, "kernelbench", samples=samples)
    if samples is None:
        raise DatasetError("this kdrun has no samples", hint="install it again, or pass --data DIR")
    return samples


def own_data_paths(name: str) -> list[Path]:
    """Return the possible paths of a file or folder of data/: in the wheel, in the checkout."""
    return [_PACKAGE / "_data" / name, *([_CHECKOUT / "data" / name] if _is_checkout() else [])]


P = TypeVar("P", bound=PurePath)


def find_by_name(paths: Iterable[P], pattern: str) -> list[P]:
    """Return the paths of the problems that match a name or glob; its suffix `.py` is ignored.

    A problem has its file's name (`9_ResNet18`) or its number (`9`), with or without its level
    (`level3/9`) and its set (`samples/vit_block`) before it. If no problem matches the exact case,
    case is ignored.
    """
    paths = list(paths)
    exact = [path for path in paths if _has_name(path, pattern.removesuffix(".py"))]
    return exact or [path for path in paths if _matches(path, pattern.lower().removesuffix(".py"))]


def find_labels(labels: Iterable[str], pattern: str) -> list[str]:
    """Return the labels, such as `level3/vit_block`, that match a name or glob.

    A label does not contain the set, so `samples/` or `kernelbench/` before a name is ignored.
    """
    pattern = re.sub(r"^(samples|kernelbench)/", "", pattern, flags=re.IGNORECASE)
    return [str(path) for path in find_by_name(map(PurePosixPath, labels), pattern)]


def _has_name(path: PurePath, name: str) -> bool:
    stem = path.name.removesuffix(".py")
    number = re.match(r"\d+(?=_)", stem)
    own_names = (stem, *([number[0]] if number else []))
    return any(_fits_pattern(path, own_name, glob.escape(name)) for own_name in own_names)


def _matches(path: PurePath, pattern: str) -> bool:
    path = PurePosixPath(str(path).lower())
    return _has_name(path, pattern) or _fits_pattern(path, path.name.removesuffix(".py"), pattern)


def _fits_pattern(path: PurePath, own_name: str, pattern: str) -> bool:
    """Return whether a pattern matches the file's own name, with or without its folders."""
    if not PurePosixPath(pattern).parts:
        return False
    folders = [path.parent]
    if source_level(path) != CUSTOM:
        folders.append(path.parent.parent)
    return any(PurePosixPath(str(folder / own_name)).match(pattern) for folder in folders)


def select_problems(
    root: DataRoot,
    levels: Iterable[int] = (),
    patterns: Iterable[str] = (),
    start: int = 0,
    count: int | None = None,
) -> list[Problem]:
    """Return the selected problems, each once, in natural order: by level, number, then name.

    Levels, names and globs narrow the root's problems; a pattern that is a file's path adds that
    file, whatever the levels. `start` and `count` cut from the sorted selection. Broken files are
    selected too: they are reported when they are read, and do not stop the others.

    Raises UsageError for invalid arguments and for an empty selection.
    """
    levels, patterns = list(levels), list(patterns)
    _check_levels(root, levels)
    pool = root.files(levels)
    if not pool and not patterns:
        raise UsageError(f"no problems in {root.path}", hint="a problem is a .py file")
    chosen = [f for p in patterns for f in _find_files(p, root, levels, "--problem ")] or pool
    problems = _drop_repetitions(map(identify_problem, _sort_files(chosen)))
    if start >= len(problems):
        raise UsageError(
            f"--start {start} is past the end: {pluralize(len(problems), 'problem')} selected"
        )
    return problems[start : None if count is None else start + count]


def select_problem(pattern: str, root: DataRoot) -> Problem:
    """Return the one problem that matches a path, a name or a glob.

    Raises UsageError if none or several match.
    """
    problems = _drop_repetitions(map(identify_problem, _sort_files(_find_files(pattern, root))))
    if len(problems) > 1:
        names = _list_files([problem.path for problem in problems], limit=8)
        raise UsageError(
            f"{pattern}: means {len(problems)} problems: {names}", hint="name one of them"
        )
    return problems[0]


def describe_origin(root: DataRoot, problems: Sequence[Problem]) -> str:
    """Return a text that names the directories of the selected problems."""
    remaining, sources = list(problems), []
    for data in _search_order(root):
        elsewhere = [
            problem
            for problem in remaining
            if not problem.path.is_relative_to(data.path.absolute())
        ]
        if len(elsewhere) < len(remaining):
            sources.append(str(data))
        remaining = elsewhere
    if remaining:
        sources.append(f"{pluralize(len(remaining), 'file')} named by path")
    return " and ".join(sources)


def _search_order(root: DataRoot) -> Iterator[DataRoot]:
    """Yield the directories in which a name is looked up, in this order."""
    yield root
    if root.samples is not None:
        yield root.samples


def _explicit_root(path: Path) -> DataRoot:
    if not path.exists():
        raise UsageError(f"--data {path}: no such directory")
    if not path.is_dir():
        raise UsageError(f"--data {path}: not a directory", hint="--problem takes a file")
    for folder in (path, path / "KernelBench"):
        if _has_levels(folder):
            return DataRoot(folder, "directory")
    if any(path.glob("*.py")):
        return DataRoot(path, "directory", flat=True)
    raise UsageError(
        f"--data {path}: no problems there", hint="it needs level1/, level2/, level3/ or .py files"
    )


def _has_levels(path: Path) -> bool:
    return any(next((path / f"level{n}").glob("*.py"), None) for n in LEVELS)


def _is_checkout() -> bool:
    return (_CHECKOUT / "data" / "manifest.txt").is_file()


def natural_sort_key(label: str) -> tuple[bool, str, list[tuple[int, int, str]]]:
    """Return a sort key: levels in order, `custom` last; `2_x` before `10_x` before `x`."""
    level, _, problem = label.rpartition("/")
    parts = (part for part in re.split(r"([0-9]+)", problem) if part)
    name = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
    return level == CUSTOM, level, name


def _sort_files(files: Iterable[Path]) -> list[Path]:
    return sorted(files, key=lambda f: (natural_sort_key(f"{source_level(f)}/{f.stem}"), f))


def _check_levels(root: DataRoot, levels: list[int]) -> None:
    available = root.levels()
    for level in levels:
        if level not in LEVELS:
            raise UsageError(f"there is no level {level}", hint="the levels are 1, 2 and 3")
        if level not in available:
            levels_text = " and ".join(str(n) for n in available) or "only problems of no level"
            raise UsageError(f"no level {level} in {root.path}", hint=f"it has {levels_text}")


def _find_files(
    pattern: str, root: DataRoot, levels: Sequence[int] = (), flag: str = ""
) -> list[Path]:
    """Return the file at a path, else the matches in the first directory that has any."""
    if not pattern:
        raise UsageError(f"{flag}'': no name", hint="`kdrun data list` shows the problems")
    path = find_path(pattern)
    if path is not None and path.is_file():
        return [path.absolute()]
    for data in _search_order(root):
        if matches := find_by_name(data.files(levels), pattern):
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
    raise UsageError(f"{flag}{pattern}: {_explain_no_match(pattern, root, levels)}")


def _explain_no_match(pattern: str, root: DataRoot, levels: Sequence[int]) -> str:
    elsewhere = [f for data in _search_order(root) for f in find_by_name(data.files(), pattern)]
    if levels and elsewhere:
        level_text = ", ".join(str(n) for n in levels)
        return f"matches nothing in level {level_text}, though {_list_files(elsewhere)} would do"
    pools = [(data.files(levels), data.path) for data in _search_order(root)]
    reason = "matches none of the " + " or of the ".join(
        f"{pluralize(len(pool), 'problem')} in {path}" for pool, path in pools
    )
    if (pattern.endswith(".py") or "/" in pattern) and glob.escape(pattern) == pattern:
        reason = f"no such file, and {reason}"
    names = {file.stem.lower(): file.stem for pool, _ in pools for file in pool}
    search = Path(pattern).name.removesuffix(".py").strip("*").lower()
    containing = [name for lower, name in names.items() if len(search) > 2 and search in lower]
    close = containing or [names[n] for n in difflib.get_close_matches(search, names)]
    file = find_path(f"{pattern}.py")
    if "." not in pattern and file is not None and file.is_file():
        reason += f"; is it the file {file}?"
    elif close:
        reason += f"; is it {' or '.join(close[:3])}?"
    if root.kind == "samples":
        reason += " (`kdrun data fetch` gets KernelBench's 250)"
    return reason


def _list_files(files: list[Path], limit: int = 3) -> str:
    return join_first([f"{source_level(f)}/{f.stem}" for f in files], limit)


def _drop_repetitions(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems without repetition.

    Raises UsageError for two different files of one level and name: their results would be written
    to one directory.
    """
    selected: dict[tuple[str, str], Problem] = {}
    for problem in problems:
        earlier = selected.setdefault((problem.source_level, problem.name), problem)
        if earlier.sha256 != problem.sha256:
            raise UsageError(
                f"{earlier.path} and {problem.path} have the same level and name",
                hint="rename one of them",
            )
    return list(selected.values())
