"""Counts the workloads of many models: how many models hold each, and what share it has.

A census is a catalogue with the packages and families that its models come from. It says how few
workloads make up how much, and which differ only in batch, sequence or image size.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from pydantic import Field, ValidationError

from runner.errors import StoreError, UsageError
from runner.report.catalogue import Catalogue, CatalogueWorkload, Point, curve
from runner.report.subject import Subject
from runner.store.result import Document
from runner.zoo import read_zoo_origin

LONGEST_REASON = 120
"""Characters of a reason that are compared, to count how many problems share it."""
FILES = "files"
"""Package of models that come from no zoo: their family is the problem's own name."""


class CensusWorkload(Document):
    """One kernel at one size, with the models that hold it."""

    id: str
    name: str
    operation: str
    family: str
    """Workloads of this operation that differ in nothing but sizes."""
    flops: int
    bytes: int
    instances: int
    models: int
    model_families: int
    packages: list[str]
    flops_share: float
    bytes_share: float
    group: int
    """Number of the group of workloads that differ only in batch, sequence or image size."""
    new: bool | None = None
    """Whether the other census lacks the workload; absent without one."""


class CensusPart(Document):
    """Totals of the models of one package or family, or of one operation."""

    name: str
    models: int
    workloads: int
    instances: int
    flops_share: float
    bytes_share: float


class CensusPackage(CensusPart):
    """Totals of one package, with the version that was run."""

    version: str
    families: int


class CountedReason(Document):
    """A reason that problems share, with their number; sizes in it are replaced by N."""

    status: str
    reason: str
    count: int
    example: str
    """Label of one of the problems."""


class CensusComparison(Document):
    """Says what another census lacks, and what only it has."""

    title: str
    common: int
    new: int
    gone: int
    new_flops_share: float


class Census(Document):
    """Counts the kernels of many models."""

    title: str
    models: int
    workloads: int
    instances: int
    flops: int
    bytes: int
    groups: int
    """Number of workloads if those that differ only in batch, sequence or image count once."""
    in_one_model: int
    """Number of workloads that only one model holds."""
    statuses: dict[str, int]
    """Number of problems by status, also of those that were not written."""
    packages: list[CensusPackage]
    families: list[CensusPart]
    operations: list[CensusPart]
    flops_curve: list[Point]
    bytes_curve: list[Point]
    models_curve: list[Point]
    """How few workloads, the most common first, make up which share of all instances."""
    reasons: list[CountedReason]
    """Why problems neither passed nor were written, the most frequent reason first."""
    against: CensusComparison | None = None
    notes: list[str] = Field(default_factory=list)
    rows: list[CensusWorkload]
    """Workloads, those with the largest share of the FLOPs first."""


@dataclass(frozen=True, slots=True)
class _ModelOrigin:
    """Package, version and family of a model."""

    package: str
    version: str
    family: str


@dataclass(frozen=True, slots=True)
class _CountedUse:
    """A workload's instances in one model, with their FLOPs and bytes."""

    workload: CatalogueWorkload
    model: str
    origin: _ModelOrigin
    instances: int

    @property
    def flops(self) -> int:
        return self.workload.flops * self.instances

    @property
    def bytes(self) -> int:
        return self.workload.bytes * self.instances


def take_census(catalogue: Catalogue, subject: Subject, earlier: Census | None = None) -> Census:
    """Return the census of a catalogue of kernels; `earlier` is one to compare it with."""
    origins = _find_origins(subject)
    uses = [
        _CountedUse(row, use.problem, origins[use.problem], use.instances)
        for row in catalogue.workloads
        for use in row.uses
    ]
    known_ids = {row.id for row in earlier.rows} if earlier else None
    rows = _count_workloads(catalogue, origins, known_ids)
    statuses: dict[str, int] = defaultdict(int)
    for problem in subject.problems:
        statuses[problem.row.status] += 1
    return Census(
        title=catalogue.title,
        models=catalogue.problems,
        workloads=len(rows),
        instances=catalogue.instances,
        flops=catalogue.flops,
        bytes=catalogue.bytes,
        groups=len({row.group for row in rows}),
        in_one_model=sum(row.models == 1 for row in rows),
        statuses=dict(statuses),
        reasons=_count_reasons(subject),
        packages=_sum_packages(uses, catalogue),
        families=_sum_parts(
            uses, catalogue, lambda use: f"{use.origin.package}/{use.origin.family}"
        ),
        operations=_sum_parts(uses, catalogue, lambda use: use.workload.operation),
        flops_curve=_curve([row.flops_share for row in rows]),
        bytes_curve=_curve([row.bytes_share for row in rows]),
        models_curve=_curve([row.instances / max(1, catalogue.instances) for row in rows]),
        against=_compare(rows, earlier) if earlier else None,
        notes=catalogue.notes,
        rows=rows,
    )


def read_census(path: Path) -> Census:
    """Return the census in a JSON file.

    Raises:
        StoreError: the file cannot be read.
        UsageError: it holds no census.
    """
    try:
        return Census.model_validate_json(path.read_bytes())
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error
    except ValidationError:
        raise UsageError(
            f"{path}: no census", hint="`kdrun workloads RUN --census --json` writes one"
        ) from None


def _count_reasons(subject: Subject) -> list[CountedReason]:
    labels: dict[tuple[str, str], list[str]] = defaultdict(list)
    for problem in subject.problems:
        row = problem.row
        if row.status not in ("passed", "written"):
            reason = re.sub(r"\d[\d.,]*", "N", row.reason or "unknown")
            labels[row.status, reason[:LONGEST_REASON]].append(row.label)
    reasons = [
        CountedReason(status=status, reason=reason, count=len(members), example=members[0])
        for (status, reason), members in labels.items()
    ]
    return sorted(reasons, key=lambda reason: (-reason.count, reason.status, reason.reason))


def _find_origins(subject: Subject) -> Mapping[str, _ModelOrigin]:
    origins = {}
    for problem in subject.decompositions:
        origin = read_zoo_origin(problem.directory / "original.py")
        origins[problem.label] = (
            _ModelOrigin(FILES, "", problem.label)
            if origin is None
            else _ModelOrigin(origin.package, origin.version, origin.family)
        )
    return origins


def _count_workloads(
    catalogue: Catalogue, origins: Mapping[str, _ModelOrigin], known_ids: set[str] | None
) -> list[CensusWorkload]:
    groups: dict[object, int] = {}
    rows = []
    for row in catalogue.workloads:
        row_origins = [origins[use.problem] for use in row.uses]
        rows.append(
            CensusWorkload(
                id=row.id,
                name=row.name,
                operation=row.operation,
                family=row.family,
                flops=row.flops,
                bytes=row.bytes,
                instances=row.instances,
                models=len(row.uses),
                model_families=len({(o.package, o.family) for o in row_origins}),
                packages=sorted({o.package for o in row_origins}),
                flops_share=row.flops * row.instances / max(1, catalogue.flops),
                bytes_share=row.bytes * row.instances / max(1, catalogue.bytes),
                group=groups.setdefault(_sizes_of_weights(row), len(groups)),
                new=None if known_ids is None else row.id not in known_ids,
            )
        )
    return sorted(rows, key=lambda row: (-row.flops_share, -row.bytes_share, row.name))


def _sizes_of_weights(row: CatalogueWorkload) -> object:
    """Return what two workloads share that differ only in batch, sequence or image size.

    That is the family with the shapes of the weights; without weights, with the last dimension of
    each input.
    """
    if row.weight_shapes:
        sizes: object = sorted(map(tuple, row.weight_shapes.values()))
    else:
        sizes = [shape[-1:] for shape in row.input_shapes.values()]
    return row.mode, row.family, repr(sizes)


def _sum_packages(uses: Sequence[_CountedUse], catalogue: Catalogue) -> list[CensusPackage]:
    members: dict[str, list[_CountedUse]] = defaultdict(list)
    for use in uses:
        members[use.origin.package].append(use)
    parts = _sum_parts(uses, catalogue, lambda use: use.origin.package)
    return [
        CensusPackage(
            **part.model_dump(),
            version=members[part.name][0].origin.version,
            families=len({use.origin.family for use in members[part.name]}),
        )
        for part in parts
    ]


def _sum_parts(
    uses: Iterable[_CountedUse], catalogue: Catalogue, name_of: Callable[[_CountedUse], str]
) -> list[CensusPart]:
    """Return the totals of uses by a name, those with the largest share of the FLOPs first."""
    members: dict[str, list[_CountedUse]] = defaultdict(list)
    for use in uses:
        members[name_of(use)].append(use)
    parts = [
        CensusPart(
            name=name,
            models=len({use.model for use in part_uses}),
            workloads=len({(use.workload.mode, use.workload.id) for use in part_uses}),
            instances=sum(use.instances for use in part_uses),
            flops_share=sum(use.flops for use in part_uses) / max(1, catalogue.flops),
            bytes_share=sum(use.bytes for use in part_uses) / max(1, catalogue.bytes),
        )
        for name, part_uses in members.items()
    ]
    return sorted(parts, key=lambda part: (-part.flops_share, -part.bytes_share, part.name))


def _curve(shares: Iterable[float]) -> list[Point]:
    return curve(list(accumulate(sorted(shares, reverse=True))))


def _compare(rows: Sequence[CensusWorkload], earlier: Census) -> CensusComparison:
    ids, earlier_ids = {row.id for row in rows}, {row.id for row in earlier.rows}
    return CensusComparison(
        title=earlier.title,
        common=len(ids & earlier_ids),
        new=len(ids - earlier_ids),
        gone=len(earlier_ids - ids),
        new_flops_share=sum(row.flops_share for row in rows if row.new),
    )
