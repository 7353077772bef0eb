"""This file knows about what a decomposer delivers: what of it is taken over, and what is refused.

Only files are taken, never links; the original is the problem's own file, whatever was delivered.
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
from runner.batch.decomposer.decomposer_process import too_much
from runner.problems import imported_packages
from runner.prompts import Facts
from runner.store.key_layout import unsafe
from runner.store.result import RESULT_FILE, Figures
from runner.tree.document import TREE_FILE, Level, Metadata, Tree
from runner.verify.reading_trees import read_mode, read_tree

ORIGINAL = "original.py"
_IGNORED = {"__pycache__", ".git"}
_UNKNOWN: dict[str, Any] = {"identity": None, "family": None, "attributes": {}}
"""Fields that a delivered tree does not decide: each kernel's own program does, once it passed."""


@dataclass(frozen=True, slots=True)
class Source:
    """The problem that is taken apart, as it was before anybody was at work."""

    name: str
    level: str
    text: bytes
    sha256: str
    mode: str


def take(output: Path, built: Path, source: Source) -> list[str]:
    """Copy what was delivered to `built`, which is made anew; what is wrong with it, a line each.

    Where nothing was delivered, or too much, `built` holds the original alone.
    """
    shutil.rmtree(built, ignore_errors=True)
    built.mkdir(parents=True)
    (built / ORIGINAL).write_bytes(source.text)
    if output.is_symlink() or not output.is_dir():
        return [f"nothing was delivered: there is no directory {output}"]
    if fault := too_much(output):
        return [fault]
    found, taken = [], 0
    for path, name in _entries(output):
        if fault := _refused(path, name):
            found.append(f"{name}: {fault}")
        elif name == ORIGINAL:
            if path.read_bytes() != source.text:
                found.append(f"{name}: is not the problem's file; copy it, byte for byte")
        elif name != RESULT_FILE:
            (built / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, built / name)
            taken += 1
    if not taken:
        return [f"nothing was delivered: {output} is empty", *found]
    if not (output / ORIGINAL).exists():
        found.append(f"{ORIGINAL}: is missing; copy the problem's file")
    said = read_mode(built) or "eval"
    if said != source.mode:
        found.append(f"{TREE_FILE}: metadata say mode {said!r}, it is run in {source.mode!r}")
    return found


def _entries(output: Path) -> Iterator[tuple[Path, str]]:
    """Everything below but folders, by its name in the directory; links are not followed."""
    for folder, folders, files in os.walk(output):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = sorted(set(folders) - set(links) - _IGNORED)
        for name in sorted([*files, *links]):
            path = Path(folder, name)
            yield path, path.relative_to(output).as_posix()


def _refused(path: Path, name: str) -> str | None:
    if path.is_symlink():
        return f"is a symbolic link to {path.readlink()}; put the file itself there"
    if not stat.S_ISREG(path.lstat().st_mode):
        return "is neither a file nor a folder"
    return "has a name that no store takes" if unsafe(name) else None


# --- the tree -------------------------------------------------------------------------------------


def complete(built: Path, source: Source, facts: Facts) -> Figures | None:
    """Fill in what a delivered tree leaves out, so that every command can read it; its figures.

    Nothing that a gate would compare. None where no tree can be read, which verification says.
    """
    tree, _ = read_tree(built)
    if tree is None:
        return None
    files = {node.path: node.level for node in tree.nodes.values()}
    counts: Counter[Level] = Counter(files.values())
    by_level: dict[Level, int] = {
        level: counts[level] for level in ("model", "layer", "fusion", "kernel")
    }
    instances = Counter(node.path for node in tree.nodes.values())
    steered = list(facts.specialisations) if facts.capture else tree.metadata.specialisations
    known: dict[str, Any] = {
        "source_file": f"{source.name}.py",
        "source_sha256": source.sha256,
        "source_level": source.level,
        "model_name": "Model",
        "kdrun_version": __version__,
        "torch_version": importlib.metadata.version("torch"),
        "packages": imported_packages(built / ORIGINAL),
        "mode": source.mode,
        "capture": facts.capture or "concrete",
        "specialisations": steered,
        "estimated_peak_bytes": facts.peak_bytes or 0,
        "total_components": len(files),
        "by_level": by_level,
        "unique_kernels": by_level["kernel"],
        "kernel_instances": sum(node.level == "kernel" for node in tree.nodes.values()),
        "unused_weights": list(facts.unused),
    }
    nodes = {
        name: node.model_copy(update=_UNKNOWN | {"instance_count": instances[node.path]})
        for name, node in tree.nodes.items()
    }
    Tree(metadata=Metadata(**known), nodes=nodes, data_flow=[]).write(built)
    return Figures(
        components=len(files),
        by_level={str(level): n for level, n in by_level.items()},
        unique_kernels=by_level["kernel"],
        kernel_instances=known["kernel_instances"],
        capture=facts.capture or "none",
        estimated_peak_bytes=facts.peak_bytes or 0,
    )


# --- what is not its own --------------------------------------------------------------------------


class Guard:
    """Notices what a decomposer changes beside its working directory."""

    def __init__(self, problem: Path, places: Sequence[Path], but: Sequence[Path]) -> None:
        """`problem` and what is in `places` is not to be touched, but for what is below `but`."""
        self.problem, self.places, self.but = problem, places, but
        self._text = problem.read_bytes()
        self._before = self._seen()

    def offences(self) -> list[str]:
        """What was changed, a line each; the problem is as it was, and new files are gone."""
        found = []
        if not self.problem.is_file() or self.problem.read_bytes() != self._text:
            self.problem.write_bytes(self._text)
            found.append(f"wrote {self.problem}, which is the problem; it was put back")
        now = self._seen()
        for path in sorted(now.keys() | self._before.keys()):
            if now.get(path) != self._before.get(path):
                found.append(f"wrote {path}, which is outside of its directory")
                if path not in self._before:
                    path.unlink(missing_ok=True)
        return found

    def _seen(self) -> dict[Path, tuple[int, int]]:
        found = {}
        for place in self.places:
            for folder, folders, files in os.walk(place):
                folders[:] = [name for name in folders if Path(folder, name) not in self.but]
                for name in files:
                    state = os.lstat(f"{folder}/{name}")
                    found[Path(folder, name)] = (state.st_mtime_ns, state.st_size)
        return found
