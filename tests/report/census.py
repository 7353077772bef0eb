"""A census: as many problems as one likes, each with kernels of its own, made of two real ones."""

import hashlib
from pathlib import Path

from runner.report.subject import ReportProblem, Subject
from runner.store.manifest_row import Row
from runner.store.result import ProblemResult
from runner.tree.document import Node, Tree

MODELS = ("level3/mlp", "level3/mlp", "level3/attention_block")


def census(output: Path, problems: int) -> Subject:
    """A subject of `problems` problems, about seven workloads each, no two of them the same.

    Their trees have identities and batches of their own; their files are those of MODELS.
    """
    trees = {label: Tree.read(output / label) for label in MODELS}
    results = {label: ProblemResult.from_directory(output / label) for label in MODELS}

    def problem(number: int) -> ReportProblem:
        label = MODELS[number % len(MODELS)]
        row = Row.from_result(results[label], attempts=1, result_sha256=None)
        name = f"model_{number}_{label.rpartition('/')[2]}"
        tree = trees[label]
        nodes = {key: _own(node, number) for key, node in tree.nodes.items()}
        return ReportProblem(
            row.model_copy(update={"problem": name}),
            output / label,
            tree.model_copy(update={"nodes": nodes}),
            results[label],
        )

    return Subject("census", output, None, tuple(map(problem, range(problems))), ())


def _own(node: Node, number: int) -> Node:
    identity = hashlib.sha256(f"{node.identity} {number}".encode()).hexdigest()[:16]
    shapes = {name: [number + 2, *dims[1:]] for name, dims in node.input_shapes.items()}
    return node.model_copy(
        update={"identity": identity if node.identity else None, "input_shapes": shapes}
    )
