"""Takes over the files that a decomposer delivers, and reports those that it refuses.

Links are never followed or copied. `original.py` is always the problem's own file, whatever was
delivered under that name.
"""

import importlib.metadata
import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner import __version__
from runner.batch.decomposer.decomposer_process import find_excess
from runner.problems import imported_packages, read_variant
from runner.prompts import Facts
from runner.store.key_layout import is_unsafe_name
from runner.store.result import RESULT_FILE, Figures
from runner.tree.document import TREE_FILE, Level, Metadata, Tree
from runner.verify.reading_trees import read_mode, read_tree

ORIGINAL = "original.py"
_IGNORED_FOLDERS = {"__pycache__", ".git"}
_UNDECIDED_FIELDS: dict[str, Any] = {"identity": None, "family": None, "attributes": {}}
"""Fields reset in a delivered tree; they are filled from each kernel's program once it passed."""


@dataclass(frozen=True, slots=True)
class ProblemSource:
    """The problem that a decomposer gets, as it was before the command ran."""

    name: str
    level: str
    text: bytes
    sha256: str
    mode: str


def copy_delivery(output: Path, build_directory: Path, source: ProblemSource) -> list[str]:
    """Copy a delivery into a new `build_directory`; return what is wrong with it, one line each.

    If nothing or too much was delivered, `build_directory` holds only the original.
    """
    shutil.rmtree(build_directory, ignore_errors=True)
    build_directory.mkdir(parents=True)
    (build_directory / ORIGINAL).write_bytes(source.text)
    if output.is_symlink() or not output.is_dir():
        return ["nothing was delivered: the output is no directory"]
    if fault := find_excess(output):
        return [fault]
    faults, copied_files = [], 0
    for path, name in _list_entries(output):
        if fault := _find_fault(path, name):
            faults.append(f"{name}: {fault}")
        elif name == ORIGINAL:
            if path.read_bytes() != source.text:
                faults.append(f"{name}: is not the problem's file; copy it, byte for byte")
        elif name != RESULT_FILE:
            (build_directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, build_directory / name)
            copied_files += 1
    if not copied_files:
        return ["nothing was delivered: the output directory is empty", *faults]
    if not (output / ORIGINAL).exists():
        faults.append(f"{ORIGINAL}: is missing; copy the problem's file")
    mode = read_mode(build_directory) or "eval"
    if mode != source.mode:
        faults.append(f"{TREE_FILE}: metadata say mode {mode!r}, it is run in {source.mode!r}")
    return faults


def _list_entries(output: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file and link below a directory with its relative name; links are not followed."""
    for folder, folders, files in os.walk(output):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = sorted(set(folders) - set(links) - _IGNORED_FOLDERS)
        for name in sorted([*files, *links]):
            path = Path(folder, name)
            yield path, path.relative_to(output).as_posix()


def _find_fault(path: Path, name: str) -> str | None:
    if path.is_symlink():
        return f"is a symbolic link to {path.readlink()}; put the file itself there"
    if not stat.S_ISREG(path.lstat().st_mode):
        return "is neither a file nor a folder"
    return "has a name that no store takes" if is_unsafe_name(name) else None


# --- the tree -------------------------------------------------------------------------------------


def complete_tree(build_directory: Path, source: ProblemSource, facts: Facts) -> Figures | None:
    """Fill in metadata that a delivered tree leaves out, and return the decomposition's figures.

    Every kdrun command can read the tree then. Nothing that a gate compares is filled in. Returns
    None if the tree cannot be read, which verification reports.
    """
    tree, _ = read_tree(build_directory)
    if tree is None:
        return None
    files = {node.path: node.level for node in tree.nodes.values()}
    counts: Counter[Level] = Counter(files.values())
    by_level: dict[Level, int] = {
        level: counts[level] for level in ("model", "layer", "fusion", "kernel")
    }
    instances = Counter(node.path for node in tree.nodes.values())
    specialisations = (
        list(facts.specialisations) if facts.capture else tree.metadata.specialisations
    )
    metadata: dict[str, Any] = {
        "source_file": f"{source.name}.py",
        "source_sha256": source.sha256,
        "source_level": source.level,
        "model_name": "Model",
        "kdrun_version": __version__,
        "torch_version": importlib.metadata.version("torch"),
        "variant": read_variant(build_directory / ORIGINAL),
        "packages": imported_packages(build_directory / ORIGINAL),
        "mode": source.mode,
        "capture": facts.capture or "concrete",
        "specialisations": specialisations,
        "estimated_peak_bytes": facts.peak_bytes or 0,
        "total_components": len(files),
        "by_level": by_level,
        "unique_kernels": by_level["kernel"],
        "kernel_instances": sum(node.level == "kernel" for node in tree.nodes.values()),
        "unused_weights": list(facts.unused),
    }
    nodes = {
        name: node.model_copy(update=_UNDECIDED_FIELDS | {"instance_count": instances[node.path]})
        for name, node in tree.nodes.items()
    }
    completed = Tree(metadata=Metadata(**metadata), nodes=nodes, data_flow=[])
    completed.write(build_directory)
    figures = Figures.of_tree(completed.metadata)
    return figures.model_copy(update={"capture": facts.capture or "none"})


# --- files outside the decomposer's directory -----------------------------------------------------


class FileGuard:
    """Detects changes that a decomposer makes outside its working directory."""

    def __init__(self, problem: Path, folders: Sequence[Path], exceptions: Sequence[Path]) -> None:
        """Guard `problem` and the files in `folders`, except those below `exceptions`."""
        self.problem, self.folders, self.exceptions = problem, folders, exceptions
        self._original = problem.read_bytes()
        self._initial_state = self._read_state()

    def collect_offences(self) -> list[str]:
        """Return each change in one line; restore the problem file and delete new files."""
        offences = []
        if not self.problem.is_file() or self.problem.read_bytes() != self._original:
            self.problem.write_bytes(self._original)
            offences.append(f"wrote {self.problem}, which is the problem; it was put back")
        state = self._read_state()
        for path in sorted(state.keys() | self._initial_state.keys()):
            if state.get(path) != self._initial_state.get(path):
                offences.append(f"wrote {path}, which is outside of its directory")
                if path not in self._initial_state:
                    path.unlink(missing_ok=True)
        return offences

    def _read_state(self) -> dict[Path, tuple[int, int]]:
        states = {}
        for root in self.folders:
            for folder, folders, files in os.walk(root):
                folders[:] = [name for name in folders if Path(folder, name) not in self.exceptions]
                for name in files:
                    info = os.lstat(f"{folder}/{name}")
                    states[Path(folder, name)] = (info.st_mtime_ns, info.st_size)
        return states
