"""Chooses the instance of a workload whose input its file draws: one that is like most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from runner.graph.distributions import Distribution, mix
from runner.tree.interface import Program
from runner.tree.part import Part

FAR = 7
"""Scales of instances that are further apart than so many times are not drawn by one rule."""


@dataclass(frozen=True, slots=True)
class Usual:
    """An instance of a workload whose input is like that of most, and the distribution of these."""

    part: Part
    value: str
    distribution: Distribution


def usual_inputs(program: Program, parts: Sequence[Part]) -> dict[str, Usual]:
    """For each input of the first part, what is most usual among all of them.

    One file stands for all instances: behind a relu or not, in the first block or in the last. Most
    of them have one structure, and of these most have a scale within a few times of one; of
    as many, those with the first instance count, after which the file is named.
    """
    usual: dict[str, Usual] = {}
    for place, name in enumerate(parts[0].io.inputs):
        found = [(p, p.io.inputs[place]) for p in parts]
        known = {value: program.distributions[value] for _, value in found}
        sorts: dict[object, list[tuple[Part, str]]] = {}
        for part, value in found:
            sorts.setdefault(known[value].draw_key, []).append((part, value))
        alike = max(sorts.values(), key=len)
        alike.sort(key=lambda item: known[item[1]].std)
        near: list[tuple[Part, str]] = max(
            (_from(alike, i, known) for i in range(len(alike))),
            key=lambda run: (len(run), any(part is parts[0] for part, _ in run)),
        )
        part, value = near[(len(near) - 1) // 2]
        whole = mix([(1.0, known[v]) for _, v in near])
        least, most = (known[v].std for _, v in (near[0], near[-1]))
        if whole.std:
            scaled = whole.scale(math.sqrt(least * most) / whole.std)
            whole = replace(scaled, low=whole.low, high=whole.high)
        usual[name] = Usual(part, value, whole)
    return usual


def _from(
    alike: list[tuple[Part, str]], begin: int, known: Mapping[str, Distribution]
) -> list[tuple[Part, str]]:
    """Return the instances from `begin` on whose scale is at most FAR times that of the first."""
    most = known[alike[begin][1]].std * FAR
    return [item for item in alike[begin:] if known[item[1]].std <= most]
