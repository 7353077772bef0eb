"""Builds the catalogue: every unique workload of a level over all models of a run.

The same convolution in two models is one workload here, although each decomposition has a file of
it. Each workload has its share of the run's FLOPs, bytes or measured time.
"""

import ast
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, computed_field

from runner.errors import UsageError, suggest_names
from runner.problems import ProblemVariant
from runner.quantities import pluralize
from runner.report.families import Family, collect_families
from runner.report.kernelbench import Limit, limits
from runner.report.subject import ReportProblem, Subject
from runner.report.units import shape
from runner.store.result import Document
from runner.tree.document import Attribute, Level, Metadata, Node
from runner.untrusted_files import read_file

Measure = Literal["flops", "bytes", "time"]
MEASURE_NAMES = {"flops": "FLOPs", "bytes": "bytes moved", "time": "time"}
Mode = Literal["eval", "train"]

SHARES = (0.5, 0.8, 0.9, 0.95, 0.99, 1.0)


class WorkloadUse(Document):
    """Says where one model uses a workload."""

    problem: str
    """Label of the problem, such as `level3/vit_block`."""
    variant: ProblemVariant | None = None
    """Original, constants and dtype of the problem; absent if it is no variant."""
    path: str
    """Path of the component file in that problem's decomposition."""
    instances: int
    places: list[str]
    """Tree ids of the instances, in the order in which they run."""


class Timing(Document):
    """Holds the measured times of a workload: repeated runs after a warm-up."""

    median_s: float
    fastest_s: float
    slowest_s: float
    runs: int
    outliers: int
    """Number of runs that took far longer than the median; `runs` counts them too."""


class Roofs(Document):
    """Holds the fastest that a device computes and copies, as measured on it."""

    flops_per_s: dict[str, float]
    """FLOP/s of a large matrix product, by dtype."""
    bytes_per_s: float
    """Bytes per second that a large copy reads and writes together."""


class CatalogueWorkload(Document):
    """Describes one component at one size, and all its uses."""

    id: str
    """Digest of the computation; the same in every run and on every machine."""
    name: str
    """Name of its component file in the first model that uses it."""
    level: Level
    operation: str
    """Operation of a kernel; else the file's name without the sizes, such as `attention_block`."""
    operations: list[str]
    """Operations of the kernels inside, in the order in which they run."""
    family: str
    """Name of the family: workloads with the same operation, attributes and dtypes."""
    mode: Mode
    attributes: dict[str, Attribute]
    input_shapes: dict[str, list[int]]
    input_dtypes: dict[str, str]
    output_shapes: dict[str, list[int]]
    output_dtypes: dict[str, str]
    weight_shapes: dict[str, list[int]]
    weight_dtypes: dict[str, str]
    flops: int
    bytes: int
    """Bytes of one instance: inputs, weights and outputs once each."""
    instances: int
    """Number of instances over all models."""
    share: float
    """Share of all workloads' total, by the measure that the catalogue is sorted by."""
    cumulative: float
    """Sum of the shares of this workload and all before it."""
    timing: Timing | None = None
    untimed: str | None = None
    """Why a workload that was to be measured has no time."""
    harness_limits: list[Limit]
    """Why KernelBench's harness cannot judge the workload; empty if it can."""
    uses: list[WorkloadUse]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def intensity(self) -> float:
        """FLOPs per byte; below about ten, memory bandwidth limits the speed."""
        return round(self.flops / self.bytes, 3) if self.bytes else 0.0


class Point(Document):
    """A point of the curve: the first `workloads` of the catalogue make up `share` of the total."""

    share: float
    workloads: int


class Catalogue(Document):
    """Lists all workloads of one level, those with the largest share first."""

    title: str
    level: Level
    by: Measure
    problems: int
    """Number of decompositions that were read."""
    instances: int
    flops: int
    bytes: int
    time_s: float | None = None
    """Time of all instances of measured workloads; absent if nothing was measured."""
    measured_on: str | None = None
    roofs: Roofs | None = None
    """Present exactly if something was measured."""
    curve: list[Point]
    notes: list[str] = Field(default_factory=list)
    workloads: list[CatalogueWorkload]
    families: list[Family]

    def __repr__(self) -> str:
        counts = pluralize(len(self.workloads), self.level), pluralize(self.problems, "model")
        return f"<{counts[0]} in {counts[1]} of {self.title}: .workloads lists them>"

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class ComponentInstances:
    """A component file of one model, and its instances there."""

    problem: ReportProblem
    nodes: tuple[Node, ...]

    @property
    def file(self) -> Path:
        return self.problem.directory / self.nodes[0].path


def collect_workloads(subject: Subject, level: Level = "kernel") -> Catalogue:
    """Return every unique workload of a level, sorted by FLOPs."""
    groups: dict[tuple[Mode, str], list[ComponentInstances]] = defaultdict(list)
    notes = list(subject.notes)
    for problem in subject.decompositions:
        missing, unidentified = [], 0
        for component in _find_components(problem, level):
            node = component.nodes[0]
            if not component.file.is_file():
                missing.append(component.file.name)
                continue
            identity = node.identity if level == "kernel" else _digest_code(component.file)
            unidentified += identity is None
            mode = _metadata(problem).mode
            groups[(mode, identity or _digest_name(node))].append(component)
        if missing:
            notes.append(
                f"{problem.label}: {pluralize(len(missing), f'{level} file')} lost: {missing[0]}."
            )
        if unidentified:
            count = pluralize(unidentified, f"{level} file")
            notes.append(
                f"{problem.label}: its tree identifies no workloads; {count} went by name."
            )
    rows = _make_names_unique([_workload(key, components) for key, components in groups.items()])
    catalogue = Catalogue(
        title=subject.title,
        level=level,
        by="flops",
        problems=len(subject.decompositions),
        instances=sum(row.instances for row in rows),
        flops=sum(row.flops * row.instances for row in rows),
        bytes=sum(row.bytes * row.instances for row in rows),
        curve=[],
        notes=notes,
        workloads=rows,
        families=[],
    )
    return sort_catalogue(catalogue, "flops")


def sort_catalogue(catalogue: Catalogue, by: Measure) -> Catalogue:
    """Return the catalogue sorted by a measure, with shares, curve and families by it."""
    amounts = {row.id + row.mode: _amount(row, by) for row in catalogue.workloads}
    total = sum(amounts.values())

    def share_of(row: CatalogueWorkload) -> float:
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
            "families": collect_families(workloads),
        }
    )


def add_times(
    catalogue: Catalogue, rows: list[CatalogueWorkload], device: str, roofs: Roofs
) -> Catalogue:
    """Return the catalogue with these workloads, which have times, sorted by time."""
    times = [row.timing.median_s * row.instances for row in rows if row.timing]
    update = {"workloads": rows, "time_s": sum(times), "measured_on": device, "roofs": roofs}
    return sort_catalogue(catalogue.model_copy(update=update), "time")


def curve(cumulative: Sequence[float]) -> list[Point]:
    """Return, for each share in SHARES, how many of the first workloads make it up."""
    points = []
    for share in SHARES:
        count = next((n for n, c in enumerate(cumulative, 1) if c >= share - 1e-9), None)
        if count is not None:
            points.append(Point(share=share, workloads=count))
    return points


def choose_workloads(
    catalogue: Catalogue, operations: Sequence[str], first: int | None
) -> list[CatalogueWorkload]:
    """Return the first workloads that run one of the operations; of all workloads if none is given.

    Raises:
        UsageError: no workload has such an operation.
    """
    operations_by_id = {row.id: {row.operation, *row.operations} for row in catalogue.workloads}
    known_operations = sorted(set().union(*operations_by_id.values()))
    for operation in operations:
        if operation not in known_operations:
            hint = suggest_names(operation, known_operations)
            raise UsageError(
                f"--operation {operation}: no {catalogue.level} here does it", hint=hint
            )
    requested = {*operations}
    chosen = [
        row for row in catalogue.workloads if not requested or requested & operations_by_id[row.id]
    ]
    return chosen[:first]


def source_of(workload: CatalogueWorkload, subject: Subject) -> Path:
    """Return the path of the component file in the first model that uses the workload."""
    use = workload.uses[0]
    problem = next(candidate for candidate in subject.problems if candidate.label == use.problem)
    return problem.directory / use.path


def to_rows(workloads: Iterable[CatalogueWorkload]) -> list[dict[str, Any]]:
    """Return a flat record for each workload, for tables that other programs read."""
    rows = []
    for row in workloads:
        record = row.model_dump(exclude={"timing"})
        record["attributes"] = json.dumps(row.attributes)
        for side in ("input", "output", "weight"):
            shapes, dtypes = record[f"{side}_shapes"], record[f"{side}_dtypes"]
            record[f"{side}_names"] = list(shapes)
            record[f"{side}_shapes"] = list(shapes.values())
            record[f"{side}_dtypes"] = list(dtypes.values())
        for use, written in zip(row.uses, record["uses"], strict=True):
            written["variant"] = str(use.variant) if use.variant else None
        record["median_s"] = row.timing.median_s if row.timing else None
        record["outliers"] = row.timing.outliers if row.timing else None
        rows.append(record)
    return rows


def _amount(row: CatalogueWorkload, by: Measure) -> float:
    if by == "time":
        return row.timing.median_s * row.instances if row.timing else 0.0
    return float((row.flops if by == "flops" else row.bytes) * row.instances)


def _find_components(problem: ReportProblem, level: Level) -> Iterable[ComponentInstances]:
    assert problem.tree is not None
    files: dict[str, list[Node]] = {}
    for node in problem.tree.nodes.values():
        if node.level == level:
            files.setdefault(node.path, []).append(node)
    return [ComponentInstances(problem, tuple(nodes)) for nodes in files.values()]


def _metadata(problem: ReportProblem) -> Metadata:
    assert problem.tree is not None
    return problem.tree.metadata


def _digest_code(file: Path) -> str | None:
    """Return a digest of a component's code without its docstring; None if it is not Python."""
    try:
        code = ast.parse(read_file(file))
    except (SyntaxError, ValueError):
        return None
    if ast.get_docstring(code) is not None:
        del code.body[0]
    return hashlib.sha256(ast.dump(code).encode()).hexdigest()[:16]


def _digest_name(node: Node) -> str:
    """Return a digest of the file's name and tensors, for a tree that has no identities."""
    facts = (Path(node.path).stem, node.operations, node.input_shapes, node.input_dtypes)
    return hashlib.sha256(repr((*facts, node.input_strides)).encode()).hexdigest()[:16]


def _workload(key: tuple[Mode, str], components: list[ComponentInstances]) -> CatalogueWorkload:
    node = components[0].nodes[0]
    name = Path(node.path).stem
    operation = node.operation or (name if node.level == "kernel" else re.split(r"_\d", name)[0])
    return CatalogueWorkload(
        id=key[1],
        name=name,
        level=node.level,
        operation=operation,
        operations=node.operations,
        family=node.family or operation,
        mode=key[0],
        attributes=node.attributes,
        input_shapes=node.input_shapes,
        input_dtypes=node.input_dtypes,
        output_shapes=node.output_shapes,
        output_dtypes=node.output_dtypes,
        weight_shapes=node.weight_shapes,
        weight_dtypes=node.weight_dtypes,
        flops=node.flops,
        bytes=node.bytes,
        instances=sum(len(component.nodes) for component in components),
        share=0,
        cumulative=0,
        harness_limits=limits(node),
        uses=[
            WorkloadUse(
                problem=component.problem.label,
                variant=_metadata(component.problem).variant,
                path=component.nodes[0].path,
                instances=len(component.nodes),
                places=[n.id for n in component.nodes],
            )
            for component in components
        ],
    )


def _make_names_unique(rows: list[CatalogueWorkload]) -> list[CatalogueWorkload]:
    """Make names unique, which they are only within a model: add input shapes, then the digest."""
    for suffix in (_input_shapes, lambda row: row.id[:8], lambda row: row.mode):
        counts = Counter(row.name for row in rows)
        rows = [
            row.model_copy(update={"name": f"{row.name}_{suffix(row)}"})
            if counts[row.name] > 1
            else row
            for row in rows
        ]
    return rows


def _input_shapes(row: CatalogueWorkload) -> str:
    shapes = [*map(shape, row.input_shapes.values())][:3]
    return "_".join(dict.fromkeys(shapes)) or "none"
