"""Defines the document `decomposition_tree.json`, and reads and writes it; see docs/formats.md."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from runner import untrusted_files
from runner.errors import DecompositionError
from runner.problems import ProblemVariant

SCHEMA_VERSION: Final = 2
TREE_FILE = "decomposition_tree.json"
ROOT = "root"

Level = Literal["model", "layer", "fusion", "kernel"]
LEVEL_NUMBER: dict[Level, int] = {"model": 3, "layer": 2, "fusion": 1, "kernel": 0}
VerificationStatus = Literal["not_run", "passed", "failed"]
Sizes = list[Annotated[int, Field(strict=True)]]
Scalar = bool | int | float | str
Attribute = Scalar | list[Scalar | list[Scalar]]
LEVEL_FOLDER: dict[Level, str] = {level: f"level_{n}_{level}" for level, n in LEVEL_NUMBER.items()}


class _TreeDocument(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Node(_TreeDocument):
    """One instance of a component in the model."""

    id: str
    """Unique in the tree: `root`, or the path of names from the root, joined by dots."""
    name: str
    """The attribute, class or operation that the instance comes from."""
    level: Level
    path: str
    """Component file, relative to the decomposition directory; all instances share it."""
    children: list[str] = Field(default_factory=list)
    """Ids of the children, in the order in which they run."""
    module_path: str = ""
    """Dotted path of the innermost module of the original that contains all of it."""
    source_line: int | None = None
    """Line of original.py on which its parent's forward calls it."""
    instance_count: int = 1
    """Number of nodes that share this path."""
    input_shapes: dict[str, Sizes]
    """Shape of each input, by the parameter names of the component file's forward, in order."""
    output_shapes: dict[str, Sizes]
    """Shape of each output, in the order of return.

    Names are the author's variables, else `output`, `output_2`.
    """
    input_dtypes: dict[str, str]
    """Dtype of each input, without the `torch.`: `float32`; same names as input_shapes."""
    output_dtypes: dict[str, str]
    """Dtype of each output; same names as output_shapes."""
    input_strides: dict[str, Sizes] = Field(default_factory=dict)
    """Strides in elements, as in the original: a transposed input stays transposed."""
    output_strides: dict[str, Sizes] = Field(default_factory=dict)
    """Strides of each output, in elements."""
    weight_shapes: dict[str, Sizes] = Field(default_factory=dict)
    """Shape of each parameter and buffer, by its name in the component file."""
    weight_dtypes: dict[str, str] = Field(default_factory=dict)
    """Dtype of each parameter and buffer; same names as weight_shapes."""
    weight_map: dict[str, str] = Field(default_factory=dict)
    """Name of a weight in the component file -> its name in original.py, for this instance."""
    operation: str | None = None
    """Name of a kernel's operation: `conv2d`; null for a node with children."""
    operations: list[str] = Field(default_factory=list)
    """Operations of the kernels inside, in the order in which they run; a kernel lists its own."""
    attributes: dict[str, Attribute] = Field(default_factory=dict)
    """Arguments of a kernel's operation that are not tensors, defaults too: `{"stride": [1, 1]}`.
    """
    identity: str | None = None
    """Digest of the workload: equal in any two trees exactly if the workloads are equal."""
    family: str | None = None
    """Operation, attributes, dtypes and numbers of dimensions of a kernel, without its sizes."""
    groups: list[list[str]] = Field(default_factory=list)
    """Straight lines of data flow among the children of a fusion, as lists of their ids."""
    flops: int = 0
    """Floating-point operations; a multiply-add counts as two."""
    bytes: int = 0
    """Bytes of inputs and weights read and of outputs written, each tensor once."""

    @model_validator(mode="after")
    def names_agree(self) -> Self:
        """Check that shapes, dtypes and strides name the same tensors, and groups only children."""
        sides: tuple[tuple[str, Mapping[str, object], Mapping[str, object], bool], ...] = (
            ("input_dtypes", self.input_dtypes, self.input_shapes, True),
            ("output_dtypes", self.output_dtypes, self.output_shapes, True),
            ("weight_dtypes", self.weight_dtypes, self.weight_shapes, False),
            ("input_strides", self.input_strides, self.input_shapes, False),
            ("output_strides", self.output_strides, self.output_shapes, False),
        )
        for field, values, shapes, required in sides:
            if (values or required) and values.keys() != shapes.keys():
                raise ValueError(f"{field} has other names than the shapes")
        if not {child for group in self.groups for child in group} <= set(self.children):
            raise ValueError("groups: ids of children alone")
        return self


class Edge(_TreeDocument):
    """A tensor that goes from one kernel to another.

    `input` stands for the model's inputs as a source, `output` for its outputs as a target.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    tensor_name: str
    shape: list[int]
    dtype: str


class Metadata(_TreeDocument):
    """The problem that was decomposed, the versions that did it, and the figures of the result."""

    schema_version: Literal[2] = SCHEMA_VERSION
    source_file: str
    source_sha256: str
    source_level: str
    model_name: str
    kdrun_version: str
    torch_version: str
    variant: ProblemVariant | None = None
    """Original file, constants and dtype; absent if the problem is a file of its own."""
    packages: dict[str, str] = Field(default_factory=dict)
    """Version of each package that original.py imports besides torch; a sha256 for a checkout."""
    mode: Literal["eval", "train"] = "eval"
    capture: Literal["fake", "real_parameters", "concrete"]
    """The capture strategy that worked.

    `fake`: fake tensors throughout; `real_parameters`: fake inputs, real weights; `concrete`: a
    trace of one run on real inputs.
    """
    specialisations: list[str] = Field(default_factory=list)
    """Input values that the captured program depends on, a sentence each; mostly empty."""
    estimated_peak_bytes: int = 0
    """Resident bytes at the worst moment of a forward pass: weights, inputs, workspaces included.
    """
    estimated_allocation_bytes: int = 0
    """Bytes allocated at that moment; more than resident if memory is freed before it is touched.
    """
    total_components: int
    by_level: dict[Level, int]
    unique_kernels: int
    kernel_instances: int
    unused_weights: list[str] = Field(default_factory=list)
    """The original's parameters and buffers that no operation of its forward reads."""
    verification_status: VerificationStatus = "not_run"
    """`not_run` until verification has judged the directory."""


class Tree(_TreeDocument):
    """The decomposition: every instance, and the tensors that flow between kernels."""

    metadata: Metadata
    nodes: dict[str, Node]
    data_flow: list[Edge]

    @model_validator(mode="after")
    def is_a_tree(self) -> Self:
        """Check that every node is below the root, with one parent of a higher level."""
        if ROOT not in self.nodes:
            raise ValueError("no node 'root'")
        visited = [ROOT]
        for identity in visited:
            node = self.nodes[identity]
            for child in node.children:
                if child not in self.nodes:
                    raise ValueError(
                        f"node {identity!r} names a child {child!r} that does not exist"
                    )
                child_level = self.nodes[child].level
                if LEVEL_NUMBER[child_level] >= LEVEL_NUMBER[node.level]:
                    raise ValueError(
                        f"{child!r} ({child_level}) is not below {identity!r} ({node.level})"
                    )
            visited.extend(node.children)
            if len(visited) > len(self.nodes):
                break  # Nodes that share their children could be more than memory holds.
        if len(visited) != len(self.nodes) or len(set(visited)) != len(visited):
            raise ValueError("some node has no parent, or more than one")
        return self

    @property
    def root(self) -> Node:
        return self.nodes[ROOT]

    def write(self, directory: Path) -> None:
        """Write the tree into a decomposition directory."""
        (directory / TREE_FILE).write_text(_format_tree(self), encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> "Tree":
        """Read a decomposition directory's tree.

        Raises:
            DecompositionError: there is none, or this version cannot read it.
        """
        return cls.parse(read_text(directory), directory / TREE_FILE)

    @classmethod
    def parse(cls, text: str, path: Path) -> "Tree":
        """Parse the text of a tree; `path` is the file's path, for error messages.

        Raises:
            DecompositionError: it is of another schema version, or does not follow the schema.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            if fault := version_fault(text):
                raise DecompositionError(f"{path}: {fault}", hint=DECOMPOSE_AGAIN) from error
            first = error.errors()[0]
            places = [str(path), ".".join(map(str, first["loc"])), first["msg"]]
            raise DecompositionError(
                ": ".join(filter(None, places)), hint="decompose the problem again"
            ) from error


_WIDTH = 120
_encode = json.JSONEncoder(ensure_ascii=False).encode


def _format_tree(tree: Tree) -> str:
    """Return the tree as readable JSON: one line for each field, each shape, each edge."""
    document = tree.model_dump(mode="json", by_alias=True)
    if tree.metadata.variant is None:
        del document["metadata"]["variant"]
    metadata = _format_fields(document["metadata"], 2)
    nodes = (
        f"  {_encode(key)}: {_format_fields(node, 3)}" for key, node in document["nodes"].items()
    )
    edges = (f"  {_encode(edge)}" for edge in document["data_flow"])
    parts = {
        "metadata": metadata,
        "nodes": "{\n" + ",\n".join(nodes) + "\n }",
        "data_flow": "[\n" + ",\n".join(edges) + "\n ]",
    }
    return "{\n" + ",\n".join(f' "{name}": {text}' for name, text in parts.items()) + "\n}\n"


def _format_fields(record: Mapping[str, object], depth: int) -> str:
    """Return a JSON object with one line for each field, and one for each item of a long value."""
    margin = " " * depth
    lines = []
    for name, value in record.items():
        text = _encode(value)
        if len(text) > _WIDTH and isinstance(value, dict):
            items = (f"{_encode(key)}: {_encode(item)}" for key, item in value.items())
            text = _format_lines("{", items, "}", margin)
        elif len(text) > _WIDTH and isinstance(value, list):
            text = _format_lines("[", map(_encode, value), "]", margin)
        lines.append(f'"{name}": {text}')
    return _format_lines("{", lines, "}", margin[1:])


def _format_lines(opening: str, items: Iterable[str], closing: str, margin: str) -> str:
    inner = ",\n".join(f"{margin} {item}" for item in items)
    return f"{opening}\n{inner}\n{margin}{closing}"


DECOMPOSE_AGAIN = "decompose the problem again with this version of kdrun"


def read_text(directory: Path) -> str:
    """Return the text of a directory's tree.

    Raises:
        DecompositionError: the file does not exist, cannot be read, or is not text.
    """
    path = directory / TREE_FILE
    try:
        return untrusted_files.read_text(path)
    except FileNotFoundError:
        raise DecompositionError(
            f"{directory}: no {TREE_FILE}", hint="name a decomposition directory"
        ) from None
    except UnicodeDecodeError as error:
        raise DecompositionError(
            f"{path}: not UTF-8", hint="decompose the problem again"
        ) from error
    except OSError as error:
        raise DecompositionError(
            f"{path}: {error.strerror or error}", hint="decompose the problem again"
        ) from error


def refuse_other_versions(directory: Path) -> None:
    """Raise DecompositionError if a directory's tree is of another schema version."""
    try:
        text = read_text(directory)
    except DecompositionError:
        return
    if fault := version_fault(text):
        raise DecompositionError(f"{directory / TREE_FILE}: {fault}", hint=DECOMPOSE_AGAIN)


class _StatedMetadata(BaseModel):
    schema_version: Any = None


class _Stated(BaseModel):
    """A tree's version; pydantic skips all else, in a tenth of the time that json takes."""

    metadata: _StatedMetadata


def schema_version(text: str) -> object:
    """Return the schema version that a tree states; None if it states none."""
    try:
        return _Stated.model_validate_json(text).metadata.schema_version
    except ValueError:
        return None


def version_fault(text: str) -> str | None:
    """Return why this kdrun cannot read a tree's version; None if it can, or none is stated."""
    version = schema_version(text)
    if version is None or version == SCHEMA_VERSION:
        return None
    return f"schema version {version}, this kdrun reads version {SCHEMA_VERSION}"
