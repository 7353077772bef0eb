"""`decomposition_tree.json`: the one model that writes and reads it; see docs/formats.md."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from runner import untrusted_files
from runner.errors import DecompositionError

SCHEMA_VERSION: Final = 2
TREE_FILE = "decomposition_tree.json"
ROOT = "root"

Level = Literal["model", "layer", "fusion", "kernel"]
LEVEL_NUMBER: dict[Level, int] = {"model": 3, "layer": 2, "fusion": 1, "kernel": 0}
VerificationStatus = Literal["not_run", "passed", "failed"]
Scalar = bool | int | float | str
Attribute = Scalar | list[Scalar | list[Scalar]]
LEVEL_FOLDER: dict[Level, str] = {level: f"level_{n}_{level}" for level, n in LEVEL_NUMBER.items()}


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Node(_Document):
    """One instance of a component in the model."""

    id: str
    """Unique in the tree: `root`, or the path of names from the root, joined by dots."""
    name: str
    """What people call it: the attribute, class or operation that it comes from."""
    level: Level
    path: str
    """Component file, relative to the decomposition directory; one for all its instances."""
    children: list[str] = Field(default_factory=list)
    """Ids, in the order in which they run."""
    module_path: str = ""
    """Where in the original: the dotted path of the innermost module that holds all of it."""
    source_line: int | None = None
    """Line of original.py on which its parent's forward calls it."""
    instance_count: int = 1
    """How many nodes share this path."""
    input_shapes: dict[str, list[int]]
    """By the names of the parameters of the component file's forward, in their order."""
    output_shapes: dict[str, list[int]]
    """By the author's variable names, else `output`, `output_2`; in the order of return."""
    input_dtypes: dict[str, str]
    """`float32`, without the `torch.`; the same names as in input_shapes, as in all below."""
    output_dtypes: dict[str, str]
    input_strides: dict[str, list[int]] = Field(default_factory=dict)
    """In elements; the original's, so that a transposed input stays transposed."""
    output_strides: dict[str, list[int]] = Field(default_factory=dict)
    weight_shapes: dict[str, list[int]] = Field(default_factory=dict)
    """Parameters and buffers of the component by their names in its file."""
    weight_dtypes: dict[str, str] = Field(default_factory=dict)
    weight_map: dict[str, str] = Field(default_factory=dict)
    """Name of a weight in the component file -> its name in original.py, for this instance."""
    operation: str | None = None
    """Name of a kernel's operation: `conv2d`; None for what has children."""
    operations: list[str] = Field(default_factory=list)
    """Operations of the kernels inside, in the order in which they run; of a kernel its own."""
    attributes: dict[str, Attribute] = Field(default_factory=dict)
    """Arguments of a kernel's operation besides tensors, usual ones too: `{"stride": [1, 1]}`."""
    identity: str | None = None
    """Digest of the workload: equal in any two trees exactly where the workloads are equal."""
    family: str | None = None
    """Operation, attributes, dtypes and numbers of dimensions of a kernel: all but its sizes."""
    groups: list[list[str]] = Field(default_factory=list)
    """Straight lines of data flow among the children of a fusion, as lists of their ids."""
    flops: int = 0
    """Multiply-adds count two."""
    bytes: int = 0
    """Read of inputs and weights, and written of outputs, once each."""

    @model_validator(mode="after")
    def names_agree(self) -> Self:
        """Shapes, dtypes and strides are of the same tensors; groups are of children."""
        sides: tuple[tuple[str, Mapping[str, object], Mapping[str, object], bool], ...] = (
            ("input_dtypes", self.input_dtypes, self.input_shapes, True),
            ("output_dtypes", self.output_dtypes, self.output_shapes, True),
            ("weight_dtypes", self.weight_dtypes, self.weight_shapes, False),
            ("input_strides", self.input_strides, self.input_shapes, False),
            ("output_strides", self.output_strides, self.output_shapes, False),
        )
        for field, given, shapes, required in sides:
            if (given or required) and given.keys() != shapes.keys():
                raise ValueError(f"{field} has other names than the shapes")
        if not {child for group in self.groups for child in group} <= set(self.children):
            raise ValueError("groups: ids of children alone")
        return self


class Edge(_Document):
    """A tensor that goes from one kernel to another.

    `input` stands for the model's inputs as a source, `output` for its outputs as a target.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    tensor_name: str
    shape: list[int]
    dtype: str


class Metadata(_Document):
    """What was taken apart, by which version, how."""

    schema_version: Literal[2] = SCHEMA_VERSION
    source_file: str
    source_sha256: str
    source_level: str
    model_name: str
    kdrun_version: str
    torch_version: str
    packages: dict[str, str] = Field(default_factory=dict)
    """What original.py imports besides torch: the version, or a sha256 where it is a checkout."""
    mode: Literal["eval", "train"] = "eval"
    capture: Literal["fake", "real_parameters", "concrete"]
    """The rung that worked: fake tensors throughout; real parameters; a trace with real inputs."""
    specialisations: list[str] = Field(default_factory=list)
    """Input values that the captured program depends on, a sentence each; mostly empty."""
    estimated_peak_bytes: int = 0
    """Resident at the worst moment of a forward pass: weights, inputs, scratch included."""
    estimated_allocation_bytes: int = 0
    """What that pass asks for by then: more, where memory is given back before it is touched."""
    total_components: int
    by_level: dict[Level, int]
    unique_kernels: int
    kernel_instances: int
    unused_weights: list[str] = Field(default_factory=list)
    """The original's parameters and buffers that no operation of its forward reads."""
    verification_status: VerificationStatus = "not_run"
    """`not_run` until verification has judged the directory."""


class Tree(_Document):
    """The decomposition: every instance, and the tensors that flow between kernels."""

    metadata: Metadata
    nodes: dict[str, Node]
    data_flow: list[Edge]

    @model_validator(mode="after")
    def is_a_tree(self) -> Self:
        """Every child exists, has one parent and a strictly lower level; all hang from the root."""
        if ROOT not in self.nodes:
            raise ValueError("no node 'root'")
        seen = [ROOT]
        for identity in seen:
            node = self.nodes[identity]
            for child in node.children:
                if child not in self.nodes:
                    raise ValueError(
                        f"node {identity!r} names a child {child!r} that does not exist"
                    )
                below = self.nodes[child].level
                if LEVEL_NUMBER[below] >= LEVEL_NUMBER[node.level]:
                    raise ValueError(
                        f"{child!r} ({below}) is not below {identity!r} ({node.level})"
                    )
            seen.extend(node.children)
        if len(seen) != len(self.nodes) or len(set(seen)) != len(seen):
            raise ValueError("some node has no parent, or more than one")
        return self

    @property
    def root(self) -> Node:
        return self.nodes[ROOT]

    def write(self, directory: Path) -> None:
        """Write the tree into a decomposition directory."""
        (directory / TREE_FILE).write_text(_layout(self), encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> "Tree":
        """Read a decomposition directory's tree.

        Raises:
            DecompositionError: there is none, or it is not one that this version understands.
        """
        return cls.parse(read_text(directory), directory / TREE_FILE)

    @classmethod
    def parse(cls, text: str, path: Path) -> "Tree":
        """The tree that `text` is; `path` is where it stands, for what is said about it.

        Raises:
            DecompositionError: it is of another schema version, or not as the schema has it.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            if fault := version_fault(text):
                raise DecompositionError(f"{path}: {fault}", hint=ANEW) from error
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise DecompositionError(
                f"{path}: {where}: {first['msg']}", hint="decompose the problem again"
            ) from error


_WIDTH = 120
_encode = json.JSONEncoder(ensure_ascii=False).encode


def _layout(tree: Tree) -> str:
    """The tree as JSON that people read: a line for each field, each shape, each edge."""
    document = tree.model_dump(mode="json", by_alias=True)
    metadata = _fields(document["metadata"], 2)
    nodes = (f"  {_encode(key)}: {_fields(node, 3)}" for key, node in document["nodes"].items())
    edges = (f"  {_encode(edge)}" for edge in document["data_flow"])
    parts = {
        "metadata": metadata,
        "nodes": "{\n" + ",\n".join(nodes) + "\n }",
        "data_flow": "[\n" + ",\n".join(edges) + "\n ]",
    }
    return "{\n" + ",\n".join(f' "{name}": {text}' for name, text in parts.items()) + "\n}\n"


def _fields(record: Mapping[str, object], depth: int) -> str:
    """An object, each field on a line of its own; the items of a long value have one, too."""
    margin = " " * depth
    lines = []
    for name, value in record.items():
        text = _encode(value)
        if len(text) > _WIDTH and isinstance(value, dict):
            items = (f"{_encode(key)}: {_encode(item)}" for key, item in value.items())
            text = _lines("{", items, "}", margin)
        elif len(text) > _WIDTH and isinstance(value, list):
            text = _lines("[", map(_encode, value), "]", margin)
        lines.append(f'"{name}": {text}')
    return _lines("{", lines, "}", margin[1:])


def _lines(opening: str, items: Iterable[str], closing: str, margin: str) -> str:
    inner = ",\n".join(f"{margin} {item}" for item in items)
    return f"{opening}\n{inner}\n{margin}{closing}"


ANEW = "decompose the problem again with this version of kdrun"


def read_text(directory: Path) -> str:
    """The text of a directory's tree.

    Raises:
        DecompositionError: there is none, or it is no text.
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
    """Raise DecompositionError where a directory's tree says that it is of another version."""
    try:
        text = read_text(directory)
    except DecompositionError:
        return
    if fault := version_fault(text):
        raise DecompositionError(f"{directory / TREE_FILE}: {fault}", hint=ANEW)


def schema_version(text: str) -> object:
    """The version that a tree says it is of; None where it says none."""
    try:
        metadata = json.loads(text)["metadata"]
        return metadata.get("schema_version")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def version_fault(text: str) -> str | None:
    """Why a tree's version is not this one's, in a few words; None where it is, or says none."""
    version = schema_version(text)
    if version is None or version == SCHEMA_VERSION:
        return None
    return f"schema version {version}, this kdrun reads version {SCHEMA_VERSION}"
