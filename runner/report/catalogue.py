"""This file knows about the catalogue: every unique kernel workload over all models of a run.

The same convolution in two models is one workload here, although each decomposition has a file of
it. What they share of the whole is said by FLOPs, by bytes, or by measured time.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, computed_field

from runner.report.family import family_name
from runner.report.identity import identify
from runner.report.subject import Found, Subject
from runner.store.result import Document
from runner.tree.document import Node

Measure = Literal["flops", "bytes", "time"]
Mode = Literal["eval", "train"]

SHARES = (0.5, 0.8, 0.9, 0.95, 0.99, 1.0)


class Use(Document):
    """One model's use of a workload."""

    problem: str
    """`level3/vit_block`."""
    path: str
    """The component file in that decomposition."""
    instances: int
    places: list[str]
    """Tree ids of the instances, in the order in which they run."""


class Timing(Document):
    """How long one run takes: the median of repeated runs, after a warm-up."""

    median_s: float
    fastest_s: float
    slowest_s: float
    runs: int
    outliers: int
    """Runs that took far longer than the median; they are in `runs`, and move no median."""


class Workload(Document):
    """One kernel at one size, and everything that uses it."""

    id: str
    """Digest of what it computes; the same in every run and on every machine."""
    name: str
    """Of its component file, in the first model that has it."""
    operation: str
    family: str
    """Id of its family: the same operation and attributes, other sizes."""
    mode: Mode
    input_shapes: list[list[int]]
    input_dtypes: list[str]
    output_shapes: list[list[int]]
    output_dtypes: list[str]
    weight_shapes: dict[str, list[int]]
    flops: int
    bytes: int
    """Of one instance: inputs, weights and outputs once each."""
    instances: int
    """Over all models."""
    share: float
    """Of the whole, by the measure that the catalogue is sorted by."""
    cumulative: float
    """Of this and all before it."""
    timing: Timing | None = None
    untimed: str | None = None
    """Why there is no time, where one was asked for."""
    uses: list[Use]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def intensity(self) -> float:
        """FLOPs a byte: below about ten, memory decides how fast it can be."""
        return round(self.flops / self.bytes, 3) if self.bytes else 0.0


class Family(Document):
    """Workloads that differ in nothing but size."""

    id: str
    name: str
    """The operation with its attributes: `conv2d(kernel_size=3, padding=1)`."""
    workloads: int
    instances: int
    problems: int
    share: float


class Point(Document):
    """The first `workloads` of the catalogue are `share` of the whole."""

    share: float
    workloads: int


class Catalogue(Document):
    """All workloads, those with the largest share first."""

    title: str
    by: Measure
    problems: int
    """Decompositions that were read."""
    instances: int
    flops: int
    bytes: int
    time_s: float | None = None
    """Of all instances that have a time; absent where nothing was measured."""
    measured_on: str | None = None
    curve: list[Point]
    notes: list[str] = Field(default_factory=list)
    workloads: list[Workload]
    families: list[Family]

    def to_json(self) -> str:
        return self.model_dump_json(indent=1, exclude_none=True) + "\n"


@dataclass(frozen=True, slots=True)
class Sighting:
    """One component file of one model, and its instances there."""

    found: Found
    nodes: tuple[Node, ...]

    @property
    def file(self) -> Path:
        return self.found.directory / self.nodes[0].path


def collect(subject: Subject) -> Catalogue:
    """Every unique kernel of the subject, sorted by FLOPs."""
    groups: dict[tuple[Mode, str], list[Sighting]] = defaultdict(list)
    families: dict[tuple[Mode, str], tuple[str, str]] = {}
    names: dict[str, str] = {}
    notes = list(subject.notes)
    for found in subject.decomposed:
        lost = []
        for sighting in _sightings(found):
            try:
                source = sighting.file.read_text(encoding="utf-8")
                identity = identify(source, sighting.nodes[0])
            except (OSError, SyntaxError, ValueError):
                lost.append(sighting.file.name)
                continue
            key = (_mode(found), identity.workload)
            groups[key].append(sighting)
            families[key] = (identity.family, source)
        if lost:
            notes.append(f"{found.label}: {len(lost)} kernel files cannot be read: {lost[0]}.")
    for key, (family, source) in families.items():
        if family not in names:
            names[family] = family_name(source, groups[key][0].nodes[0])
    rows = _named_apart(
        [_workload(key, families[key][0], sightings) for key, sightings in groups.items()]
    )
    whole = Catalogue(
        title=subject.title,
        by="flops",
        problems=len(subject.decomposed),
        instances=sum(row.instances for row in rows),
        flops=sum(row.flops * row.instances for row in rows),
        bytes=sum(row.bytes * row.instances for row in rows),
        curve=[],
        notes=notes,
        workloads=rows,
        families=[
            Family(id=id, name=name, workloads=0, instances=0, problems=0, share=0)
            for id, name in _told_apart(names, rows).items()
        ],
    )
    return sort(whole, "flops")


def sort(catalogue: Catalogue, by: Measure) -> Catalogue:
    """The same, by another measure: shares, order, curve and families."""
    amounts = {row.id + row.mode: _amount(row, by) for row in catalogue.workloads}
    total = sum(amounts.values())

    def share_of(row: Workload) -> float:
        return amounts[row.id + row.mode] / total if total else 0.0

    ordered = sorted(catalogue.workloads, key=lambda row: (-share_of(row), -row.bytes, row.name))
    shares = [share_of(row) for row in ordered]
    workloads = [
        row.model_copy(update={"share": share, "cumulative": min(so_far, 1.0)})
        for row, share, so_far in zip(ordered, shares, accumulate(shares), strict=True)
    ]
    return catalogue.model_copy(
        update={
            "by": by,
            "workloads": workloads,
            "curve": curve([row.cumulative for row in workloads]),
            "families": _families(catalogue.families, workloads),
        }
    )


def curve(cumulative: Sequence[float]) -> list[Point]:
    """How few of them make up how much."""
    points = []
    for share in SHARES:
        needed = next((n for n, c in enumerate(cumulative, 1) if c >= share - 1e-9), None)
        if needed is not None:
            points.append(Point(share=share, workloads=needed))
    return points


def choose(catalogue: Catalogue, operations: Sequence[str], first: int | None) -> list[Workload]:
    """Those of some operations (all for none), the first so many of them."""
    chosen = [row for row in catalogue.workloads if not operations or row.operation in operations]
    return chosen[:first]


def source_of(workload: Workload, subject: Subject) -> Path:
    """The component file in the first model that has it."""
    use = workload.uses[0]
    place = next(found for found in subject.problems if found.label == use.problem)
    return place.directory / use.path


def to_rows(workloads: Iterable[Workload]) -> list[dict[str, Any]]:
    """A flat record each, for tables that other programs read."""
    rows = []
    for row in workloads:
        record = row.model_dump(exclude={"timing", "weight_shapes"})
        record["weight_names"] = list(row.weight_shapes)
        record["weight_shapes"] = list(row.weight_shapes.values())
        record["median_s"] = row.timing.median_s if row.timing else None
        record["outliers"] = row.timing.outliers if row.timing else None
        rows.append(record)
    return rows


def _amount(row: Workload, by: Measure) -> float:
    if by == "time":
        return row.timing.median_s * row.instances if row.timing else 0.0
    return float((row.flops if by == "flops" else row.bytes) * row.instances)


def _sightings(found: Found) -> Iterable[Sighting]:
    assert found.tree is not None
    files: dict[str, list[Node]] = {}
    for node in found.tree.nodes.values():
        if node.level == "kernel":
            files.setdefault(node.path, []).append(node)
    return [Sighting(found, tuple(nodes)) for nodes in files.values()]


def _mode(found: Found) -> Mode:
    assert found.tree is not None
    return found.tree.metadata.mode


def _workload(key: tuple[Mode, str], family: str, sightings: list[Sighting]) -> Workload:
    node = sightings[0].nodes[0]
    return Workload(
        id=key[1],
        name=Path(node.path).stem,
        operation=", ".join(node.operations),
        family=family,
        mode=_mode(sightings[0].found),
        input_shapes=node.input_shapes,
        input_dtypes=node.input_dtypes,
        output_shapes=node.output_shapes,
        output_dtypes=node.output_dtypes,
        weight_shapes=node.weight_shapes,
        flops=node.flops,
        bytes=node.bytes,
        instances=sum(len(sighting.nodes) for sighting in sightings),
        share=0,
        cumulative=0,
        uses=[
            Use(
                problem=sighting.found.label,
                path=sighting.nodes[0].path,
                instances=len(sighting.nodes),
                places=[n.id for n in sighting.nodes],
            )
            for sighting in sightings
        ],
    )


def _named_apart(rows: list[Workload]) -> list[Workload]:
    """Names are unique within a model only: what shares one here says its inputs, too."""
    for extra in (_inputs, lambda row: row.id[:8], lambda row: row.mode):
        counts = Counter(row.name for row in rows)
        rows = [
            row.model_copy(update={"name": f"{row.name}_{extra(row)}"})
            if counts[row.name] > 1
            else row
            for row in rows
        ]
    return rows


def _inputs(row: Workload) -> str:
    shapes = ["x".join(map(str, shape)) or "scalar" for shape in row.input_shapes[:3]]
    return "_".join(dict.fromkeys(shapes)) or "none"


def _told_apart(names: dict[str, str], rows: Sequence[Workload]) -> dict[str, str]:
    """Families of one name differ in how many dimensions their inputs have, in dtype or bias."""
    example = {row.family: row for row in reversed(rows)}

    def ranks(id: str) -> str:
        return " and ".join(f"{len(s)}-d" for s in example[id].input_shapes[:3]) or "no inputs"

    def dtypes(id: str) -> str:
        return ", ".join(dict.fromkeys(example[id].output_dtypes))

    for extra in (ranks, dtypes, lambda id: f"like {example[id].name}"):
        counts = Counter(names.values())
        names = {
            id: f"{name} · {extra(id)}" if counts[name] > 1 else name for id, name in names.items()
        }
    return names


def _families(known: Sequence[Family], workloads: Sequence[Workload]) -> list[Family]:
    members: dict[str, list[Workload]] = defaultdict(list)
    for row in workloads:
        members[row.family].append(row)
    rows = [
        family.model_copy(
            update={
                "workloads": len(members[family.id]),
                "instances": sum(row.instances for row in members[family.id]),
                "problems": len(Counter(u.problem for r in members[family.id] for u in r.uses)),
                "share": sum(row.share for row in members[family.id]),
            }
        )
        for family in known
    ]
    return sorted(rows, key=lambda family: (-family.share, -family.workloads, family.name))
