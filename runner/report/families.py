"""Sums up workloads that differ only in size, with a table of their shapes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from runner.report.axis_names import varied_sizes
from runner.store.result import Document

if TYPE_CHECKING:
    from runner.report.catalogue import CatalogueWorkload


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
