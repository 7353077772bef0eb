"""What the tests of the graph share: a problem file with gaps, and a graph that runs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import torch

from runner.graph import Graph, recognize
from runner.graph.ir import Arg, Ref, Symbol
from runner.problems import Problem

FILE = """\
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

{classes}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, {arguments}):
{forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""

Write = Callable[..., Problem]
Program = Callable[..., Graph]


def interpret(graph: Graph, tensors: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    """The returned tensors of a program, run operator by operator.

    `tensors` holds the inputs and what the model owns by the names that the graph gives them; each
    value's shape, dtype and strides must be what the graph says.
    """
    literals = {name: state.literal for name, state in graph.states.items() if state.literal}
    known = {name: eval(text, {"torch": torch}) for name, text in literals.items()}
    known.update(tensors)

    def argument(arg: Arg) -> object:
        if isinstance(arg, Ref):
            return known[arg.name]
        if isinstance(arg, Symbol):
            return eval(arg.text, {"torch": torch, "device": torch.device("cpu")})
        return [argument(item) for item in arg] if isinstance(arg, tuple) else arg

    for op in graph.operations:
        name, _, overload = op.target.partition(".")
        operator = getattr(getattr(torch.ops.aten, name), overload)
        if op.target == "to.device":  # Here everything is on the CPU.
            operator = partial(torch.Tensor.to, device="cpu")
            op = replace(op, args=(op.args[0], *op.args[2:]))
        result = operator(*map(argument, op.args), **{k: argument(v) for k, v in op.kwargs})
        results = result if isinstance(result, (tuple, list)) else [result]
        for output, tensor in zip(op.outputs, results, strict=True):
            if output:
                spec = graph.values[output]
                assert (*tensor.shape,) == spec.shape, op
                assert str(tensor.dtype) == f"torch.{spec.dtype}", op
                strides = replace(spec, stride=tensor.stride()).effective_strides
                assert strides == spec.effective_strides, op
                known[output] = tensor
    return [known[name] for name in graph.output_names()]


def names(graph: Graph) -> list[str]:
    """What the kernels of a program are called, in the order in which they run."""
    return [kernel.operation for kernel in recognize(graph)]
