"""Sums up workloads that differ only in size, with a table of their shapes.

Sizes that variants of a problem differ in are called `batch`, `seq` or `hidden`, or as the constant
is that was varied.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from runner.problems import ProblemVariant
from runner.store.result import Document

if TYPE_CHECKING:
    from runner.report.catalogue import CatalogueWorkload

AXIS_WORDS = (
    ("batch", r"batch|^b$|^bs$"),
    ("seq", r"seq|context|num_tokens"),
    ("hidden", r"hidden|d_model|n_embd|embed"),
)
"""Name of an axis, and the pattern of the constants that it is called after."""

Sizes = Mapping[str, int]
"""Values of the constants that were varied, by the word for an axis."""


class FamilyShape(Document):
    """One size that a kernel of a family has to cover."""

    workload: str
    sizes: dict[str, int] = Field(default_factory=dict)
    """Constants that variants of a problem differ in, such as `batch`; empty without variants."""
    inputs: list[list[int]]
    weights: list[list[int]]
    outputs: list[list[int]]
    instances: int


class Family(Document):
    """Sums up workloads that differ only in size."""

    name: str
    """Operation with its attributes: `conv2d(kernel_size=3, padding=1) on 4-d float32`."""
    operation: str
    workloads: int
    instances: int
    problems: int
    share: float
    shapes: list[FamilyShape]
    """Shapes of its workloads, smaller ones first."""


def collect_families(workloads: Sequence[CatalogueWorkload]) -> list[Family]:
    """Return the families of workloads, those with the largest share first."""
    sizes = varied_sizes({use.problem: use.variant for row in workloads for use in row.uses})
    members: dict[str, list[CatalogueWorkload]] = defaultdict(list)
    for row in workloads:
        members[row.family].append(row)
    families = [
        Family(
            name=name,
            operation=rows[0].operation,
            workloads=len(rows),
            instances=sum(row.instances for row in rows),
            problems=len({use.problem for row in rows for use in row.uses}),
            share=sum(row.share for row in rows),
            shapes=[
                FamilyShape(
                    workload=row.name,
                    sizes=dict(sizes[row.uses[0].problem]),
                    inputs=list(row.input_shapes.values()),
                    weights=list(row.weight_shapes.values()),
                    outputs=list(row.output_shapes.values()),
                    instances=row.instances,
                )
                for row in sorted(rows, key=lambda row: (row.flops, row.bytes, row.name))
            ],
        )
        for name, rows in members.items()
    ]
    return sorted(families, key=lambda family: (-family.share, -family.workloads, family.name))


def varied_sizes(problems: Mapping[str, ProblemVariant | None]) -> dict[str, Sizes]:
    """Return the sizes of each problem by its label; an original's are those before the change."""
    variants = [variant for variant in problems.values() if variant is not None]
    before: dict[str, dict[str, int]] = defaultdict(dict)
    for variant in variants:
        before[variant.source] |= _integers(variant, changed=False)
    return {
        label: before[label]
        if variant is None
        else before[variant.source] | _integers(variant, changed=True)
        for label, variant in problems.items()
    }


def _integers(variant: ProblemVariant, *, changed: bool) -> dict[str, int]:
    values: dict[str, int] = {}
    for name, value in variant.values(changed=changed).items():
        if type(value) is int:
            words = (word for word, p in AXIS_WORDS if re.search(p, name, re.IGNORECASE))
            values.setdefault(next(words, name.lower()), value)
    return values
