"""Finds the files of a decomposition directory and which component each copy belongs to."""

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from runner.tree.document import LEVEL_FOLDER, TREE_FILE, Node, Tree
from runner.untrusted_files import DEEPEST, MOST_FILES, read_file, read_json, walk
from runner.verify.loading_files import CHILDREN, CannotJudge
from runner.verify.reading_trees import read_tree

ORIGINAL = "original.py"
COMPOSITION_TEST = "verification/composition_test.py"
CHECKS = "verification/checks.py"
"""Functions that a directory's own tests call; kdrun compares with its own code instead."""
KERNEL_FOLDER = LEVEL_FOLDER["kernel"]


@dataclass(frozen=True, slots=True)
class StepFolder:
    """One folder of `steps/`: a parent rewritten as calls of its children."""

    folder: str
    """Path relative to the directory."""
    parent: str | None
    """The component file whose bytes its original.py has."""
    children: dict[str, str | None]
    """Name in children/ without `.py` -> the component file with the same bytes."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one decomposition; reading them has run no code."""

    directory: Path
    tree: Tree | None
    tree_fault: str | None
    """Reason in one line why there is no tree."""
    components: tuple[str, ...]
    """Relative paths of component files, kernels first: those in the tree.

    Without a tree, those on disk.
    """
    unlisted: tuple[str, ...]
    """Component files on disk that are in no node of the tree; none of them runs."""
    steps: tuple[StepFolder, ...]
    refusals: dict[str, str]
    """File -> fault of its place or kind; if there is any, no file of the directory may run."""
    instances: dict[str, list[Node]]
    """Component file -> the tree's instances of it."""

    def nodes(self, component: str) -> list[Node]:
        """Return the tree's instances of a component file."""
        return self.instances.get(component, [])

    def is_kernel(self, component: str) -> bool:
        """Return whether a component lies in the kernels' folder, which needs no tree."""
        return component.startswith(f"{KERNEL_FOLDER}/")

    def step_of(self, component: str) -> StepFolder | None:
        """Return the step that takes a component apart."""
        return next((step for step in self.steps if step.parent == component), None)

    def kernels_below(self, component: str) -> set[str]:
        """Return the kernel files of all instances below a component's instances."""
        kernels: set[str] = set()
        for start in self.nodes(component):
            stack = [start]
            while stack:
                node = stack.pop()
                kernels |= {node.path} if node.level == "kernel" else set()
                assert self.tree is not None
                stack += [self.tree.nodes[child] for child in node.children]
        return kernels


def read_layout(directory: Path) -> Layout:
    """Return the layout of a directory, also where files are missing."""
    paths = list(islice(walk(directory), MOST_FILES + 1))
    deepest = max((len(path.parts) for path in paths), default=0) - len(directory.parts)
    if len(paths) > MOST_FILES or deepest > DEEPEST:
        kind = f"{MOST_FILES} files" if len(paths) > MOST_FILES else f"{DEEPEST} nested folders"
        refusal = {".": f"has more than {kind}"}
        return Layout(directory, None, None, (), (), (), refusal, {})
    tree, fault = read_tree(directory)
    refusals = _find_refusals(directory, tree)
    on_disk = {
        path.relative_to(directory).as_posix()
        for folder in LEVEL_FOLDER.values()
        for path in directory.glob(f"{folder}/*.py")
        if path.name != "__init__.py" or (_read_bytes(path) or b"").strip()
    }
    in_tree = {node.path for node in tree.nodes.values()} if tree else on_disk
    components = sorted(in_tree, key=lambda path: (path.partition("/")[0], path))
    unlisted = tuple(sorted(on_disk - in_tree))
    folders = sorted(
        (path for path in directory.glob("steps/*") if path.is_dir()), key=_step_number
    )
    texts = {path: _read_bytes(directory / path) for path in [*components, *unlisted]}
    paths_by_text: dict[bytes | None, list[str]] = {}
    for component, text in texts.items():
        if text is not None:
            paths_by_text.setdefault(text, []).append(component)
    steps = tuple(_read_step(directory, folder, paths_by_text) for folder in folders)
    instances: dict[str, list[Node]] = {}
    for node in tree.nodes.values() if tree else ():
        instances.setdefault(node.path, []).append(node)
    return Layout(directory, tree, fault, tuple(components), unlisted, steps, refusals, instances)


def read_weight_map(step: Path) -> dict[str, str]:
    """Read a step's weight_map.json and return its inverse: refactored name -> original name.

    CannotJudge if it is missing, or maps a name to anything but a name or a list of names.
    """
    file = f"{step.name}/weight_map.json"
    try:
        document = read_json(step / "weight_map.json")
    except OSError as error:
        raise CannotJudge(f"{file}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise CannotJudge(f"{file} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise CannotJudge(f"{file} is {type(document).__name__}, not a map of names to names")
    mapping: dict[str, str] = {}
    for original, value in document.items():
        names = value if isinstance(value, list) else [value]
        if not names or not all(isinstance(name, str) for name in names):
            raise CannotJudge(f"{file}: {original!r}: {value!r} is neither a name nor names")
        for name in names:
            mapping.setdefault(name, original)
    return mapping


def require_name_map(value: object, label: str) -> dict[str, str]:
    """Return a value that is a map of names to names; CannotJudge if it is anything else."""
    if not isinstance(value, dict):
        raise CannotJudge(f"{label} is {type(value).__name__}, not a map of names to names")
    for key, item in value.items():
        if not isinstance(key, str) or not isinstance(item, str):
            raise CannotJudge(f"{label}: {key!r}: {item!r} does not map a name to a name")
    return value


def _find_refusals(directory: Path, tree: Tree | None) -> dict[str, str]:
    """Return special files, links and tree paths that leave the directory, a lost original."""
    refusals = {}
    if tree and not (directory / ORIGINAL).exists():
        refusals[ORIGINAL] = "is missing: put the problem there that was taken apart"
    for path in sorted(walk(directory)):
        name = path.relative_to(directory).as_posix()
        if not path.is_symlink() and not path.is_file() and not path.is_dir():
            refusals[name] = "is neither a file nor a folder"
        if path.is_symlink() and not _leads_inside(path, directory):
            refusals[name] = f"is a symbolic link to {path.readlink()}, outside of the directory"
        elif path.is_symlink() and path.is_dir():
            refusals[name] = "is a link to a folder: put the folder itself there"
    for node in tree.nodes.values() if tree else ():
        if not Path(os.path.normpath(directory / node.path)).is_relative_to(directory):
            refusals.setdefault(TREE_FILE, f"{node.id}: {node.path} is outside of the directory")
    return refusals


def _leads_inside(link: Path, directory: Path) -> bool:
    try:
        return link.resolve().is_relative_to(directory)
    except (RuntimeError, OSError):  # the link leads to itself
        return False


def _read_step(
    directory: Path, folder: Path, paths_by_text: dict[bytes | None, list[str]]
) -> StepFolder:
    """`paths_by_text`: maps the bytes of component files to their paths."""
    paths = paths_by_text.get(_read_bytes(folder / ORIGINAL), [])
    parent = max(paths, default=None)  # kernels last
    children = {
        path.stem: _find_namesake(paths_by_text.get(_read_bytes(path), []), path.name)
        for path in sorted((folder / CHILDREN).glob("*.py"))
        if path.name != "__init__.py"
    }
    return StepFolder(folder.relative_to(directory).as_posix(), parent, children)


def _find_namesake(paths: list[str], name: str) -> str | None:
    """Return the first path, preferably one with this file name."""
    namesakes = [path for path in paths if path.rpartition("/")[2] == name]
    return min(namesakes or paths, default=None)


def _read_bytes(path: Path) -> bytes | None:
    try:
        return read_file(path)
    except OSError:
        return None


def _step_number(path: Path) -> tuple[int, str]:
    number = path.name.removeprefix("step_").partition("_")[0]
    return (int(number) if number.isdecimal() else 1 << 30, path.name)
