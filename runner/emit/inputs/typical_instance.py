"""Chooses the instance of a workload whose input is typical, for its file to draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from runner.graph.distributions import Distribution, mixed
from runner.tree.interface import Program
from runner.tree.part import Part

FAR = 7
"""Largest ratio between the standard deviations of instances that one distribution stands for."""


@dataclass(frozen=True, slots=True)
class TypicalInput:
    """A typical input of a workload's instances."""

    part: Part
    """The instance that it comes from."""
    value: str
    """Name of the value in the graph."""
    distribution: Distribution
    """Distribution over all instances with a similar input."""


def typical_inputs(program: Program, parts: Sequence[Part]) -> dict[str, TypicalInput]:
    """Return for each input of the first part the typical one among all parts.

    One file stands for all instances, behind a relu or not, in the first block or in the last. The
    typical input is of the most frequent sort of distribution, and there in the largest group whose
    standard deviations differ by at most FAR; of equal groups, the one with the first part counts.
    """
    usual: dict[str, TypicalInput] = {}
    for place, name in enumerate(parts[0].io.inputs):
        found = [(p, p.io.inputs[place]) for p in parts]
        known = {value: program.distributions[value] for _, value in found}
        sorts: dict[object, list[tuple[Part, str]]] = {}
        for part, value in found:
            sorts.setdefault(known[value].sort, []).append((part, value))
        alike = max(sorts.values(), key=len)
        alike.sort(key=lambda item: known[item[1]].std)
        near: list[tuple[Part, str]] = max(
            (_from(alike, i, known) for i in range(len(alike))),
            key=lambda run: (len(run), any(part is parts[0] for part, _ in run)),
        )
        part, value = near[(len(near) - 1) // 2]
        whole = mixed([(1.0, known[v]) for _, v in near])
        least, most = (known[v].std for _, v in (near[0], near[-1]))
        if whole.std:
            scaled = whole.times(math.sqrt(least * most) / whole.std)
            whole = replace(scaled, low=whole.low, high=whole.high)
        usual[name] = TypicalInput(part, value, whole)
    return usual


def _from(
    alike: list[tuple[Part, str]], begin: int, known: Mapping[str, Distribution]
) -> list[tuple[Part, str]]:
    """Return the instances from `begin` on with at most FAR times its standard deviation."""
    most = known[alike[begin][1]].std * FAR
    return [item for item in alike[begin:] if known[item[1]].std <= most]
