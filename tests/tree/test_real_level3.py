"""KernelBench's level 3, where it was fetched: its trees are small, and their names are words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

import pytest
from outlines import drawn

from runner.graph.normalize import normalize
from runner.graph.recognition.recognize import recognize
from runner.graph.tracing.capture import capture
from runner.problems import select_problems
from runner.problems.selection import KERNELBENCH, DataRoot
from runner.tree.interface import Program
from runner.tree.naming import LONGEST_NAME
from runner.tree.part import Part
from runner.tree.partition import partition
from runner.tree.workload import workloads

ROOT = Path(__file__).parents[2] / KERNELBENCH
HASH = re.compile(r"_[0-9a-f]{8}_")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not ROOT.is_dir(), reason="needs the real dataset: kdrun data fetch"),
]


@dataclass(frozen=True)
class Taken:
    name: str
    root: Part
    names: frozenset[str]


@cache
def level3() -> tuple[Taken, ...]:
    found = []
    for problem in select_problems(DataRoot(ROOT, "kernelbench"), levels=[3]):
        graph = normalize(capture(problem))
        program = Program(graph, recognize(graph))
        root = partition(program, "level3", problem.name)
        known = workloads(program, root)
        found.append(Taken(problem.name, root, frozenset(w.name for w in known.values())))
    return tuple(found)


def layers() -> Iterator[tuple[str, Part]]:
    """Every different layer, with the problem that it is in."""
    for taken in level3():
        different = {drawn(part): part for part in taken.root.walk() if part.level == "layer"}
        yield from ((taken.name, part) for part in different.values())


def test_the_median_layer_has_at_most_four_children() -> None:
    counts = [len(part.children) for _, part in layers()]
    assert len(counts) > 40
    assert median(counts) <= 4


def test_no_layer_has_more_than_ten_different_children() -> None:
    for name, part in layers():
        assert len({drawn(child) for child in part.children}) <= 10, (name, part.name)


def test_a_kernel_in_a_layer_is_in_a_fusion_or_stands_alone_for_a_reason() -> None:
    alone = 0
    for name, layer in layers():
        for child in layer.children:
            if child.level == "kernel":
                alone += 1
                assert "in no fusion" in child.reason, (name, child.name)
    assert alone


def test_names_are_words() -> None:
    names = [name for taken in level3() for name in taken.names]
    assert len(names) > 1000
    assert not [name for name in names if len(name) > LONGEST_NAME]
    assert sum(bool(HASH.search(name)) for name in names) < len(names) / 100


def test_no_component_is_a_copy_of_a_layout() -> None:
    stems = {part.stem for taken in level3() for part in taken.root.walk()}
    assert "contiguous_copy" not in " ".join(stems)
