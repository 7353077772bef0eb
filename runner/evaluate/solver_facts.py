"""Collects the values that reach a component's places in the model, for a solver's brief."""

from typing import Any

import torch

from runner.errors import KdrunError
from runner.evaluate.correctness import copy_inputs, draw_model, run_forward
from runner.evaluate.places import Builder, Place, watch_calls
from runner.evaluate.requests import SolverFacts, SolverRequest
from runner.tree.document import Tree
from runner.verify.loading_files import CannotJudge, Files
from runner.verify.runtime.output_leaves import tensors

_MOST_PLACES = 4


def collect_facts_in_child(argument: str) -> str:
    """Run the model once, and describe the values that reach a component; JSON both ways."""
    request = SolverRequest.model_validate_json(argument)
    torch.set_num_threads(request.threads)
    try:
        return SolverFacts(lines=_describe_values(request)).model_dump_json()
    except (KdrunError, CannotJudge) as error:
        return SolverFacts(lines=[], error=str(error)).model_dump_json()


def _describe_values(request: SolverRequest) -> list[str]:
    tree = Tree.read(request.directory)
    lines: list[str] = []
    with Files(request.directory) as files:
        builder = Builder(request.directory, tree, files)
        refactored = builder.find_refactored([request.component])
        model = builder.build(refactored)
        training = tree.metadata.mode == "train"
        draw = draw_model(files.problem(), training, vary=False)
        places = builder.find_places(model, copy_inputs(draw.inputs), refactored)
        builder.load_original_weights(model, places, refactored, draw.weights)
        watched = [place for place in places if place.component == request.component]

        def before(place: Place, args: Any, kwargs: Any) -> None:
            for number, tensor in enumerate(tensors([*args, kwargs])):
                lines.append(f"- {place.node}, input {number}: {_describe_tensor(tensor)}")

        with watch_calls(model, watched[:_MOST_PLACES], before, lambda *_: None):
            run_forward(model, copy_inputs(draw.inputs), draw.seed)
    return lines


def _describe_tensor(tensor: torch.Tensor) -> str:
    dtype = str(tensor.dtype).removeprefix("torch.")
    head = f"{dtype}{list(tensor.shape)}, strides {list(tensor.stride())}"
    if not tensor.numel() or tensor.is_complex():
        return head
    wide = tensor.double()
    numbers = f"from {float(wide.min()):.3g} to {float(wide.max()):.3g}"
    return f"{head}, {numbers}, mean {float(wide.mean()):.3g}, spread {float(wide.std()):.3g}"
