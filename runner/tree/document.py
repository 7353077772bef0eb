"""This file knows about `decomposition_tree.json`: the one model that writes and reads it."""

from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from runner.errors import DecompositionError

SCHEMA_VERSION = 1
TREE_FILE = "decomposition_tree.json"
ROOT = "root"

Level = Literal["model", "layer", "fusion", "kernel"]
LEVEL_NUMBER: dict[Level, int] = {"model": 3, "layer": 2, "fusion": 1, "kernel": 0}
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
    """Line of original.py that computes its result."""
    instance_count: int = 1
    """How many nodes share this path."""
    operations: list[str] = Field(default_factory=list)
    """Names of the kernels inside, in the order in which they run; a kernel's own operation."""
    input_shapes: list[list[int]]
    output_shapes: list[list[int]]
    input_dtypes: list[str]
    output_dtypes: list[str]
    input_strides: list[list[int]]
    """Elements; the original's, so that a transposed input stays transposed."""
    weight_shapes: dict[str, list[int]] = Field(default_factory=dict)
    """Parameters and buffers of the component by their name in the file."""
    weight_map: dict[str, str] = Field(default_factory=dict)
    """Name of a weight in the component file -> its name in original.py, for this instance."""
    flops: int = 0
    """Multiply-adds count two."""
    bytes: int = 0
    """Inputs, weights and outputs once each."""


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

    schema_version: int = SCHEMA_VERSION
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
    verification_status: str = "not_run"


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
        text = self.model_dump_json(by_alias=True, indent=1)
        (directory / TREE_FILE).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> "Tree":
        """Read a decomposition directory's tree.

        Raises:
            DecompositionError: there is none, or it is not one that this version understands.
        """
        path = directory / TREE_FILE
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DecompositionError(
                f"{directory}: no {TREE_FILE}", hint="name a decomposition directory"
            ) from None
        except (ValidationError, UnicodeDecodeError) as error:
            first = error.errors()[0] if isinstance(error, ValidationError) else None
            what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first else "not UTF-8"
            raise DecompositionError(
                f"{path}: {what}", hint="decompose the problem again"
            ) from error
