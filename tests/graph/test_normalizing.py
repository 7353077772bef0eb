"""A normalised program computes what the model computes, and changes nothing in place."""

import pytest
import torch
from programs import Program, Write, interpret

from runner.graph import Graph
from runner.problems import load_problem

IN_PLACE = {
    "arithmetic": "y = x.clone()\ny += 1\ny.mul_(2)\nreturn y",
    "a view written before its base is read": "y = x.clone()\nv = y[1]\nv.add_(1)\nreturn y * 2",
    "a base written before its view is read": "y = x.clone()\nv = y[1]\ny.mul_(3)\nreturn v + 1",
    "a slice": "y = torch.zeros(4, 8)\ny[1:3, ::2] = x[1:3, ::2]\nreturn y",
    "rows, one after another": (
        "out = torch.zeros(4, 8)\nfor i in range(4):\n    out[i] = x[i] * i\nreturn out"
    ),
    "a view of a view": "y = x.clone()\ny.t()[1].add_(3)\nreturn y",
    "another shape": "y = x.clone()\ny.view(8, 4)[:, 0] = 5.0\nreturn y",
    "chunks": "y = x.clone()\na, b = y.chunk(2, -1)\na.copy_(b)\nb.zero_()\nreturn y",
    "permuted": "y = x.clone().view(2, 2, 8)\ny.permute(2, 0, 1)[3].fill_(2)\nreturn y",
    "a diagonal": "y = x[:, :4].clone()\ny.diagonal().copy_(x[0, :4])\nreturn y",
    "a part that is read afterwards": (
        "y = x.clone()\nv = y[:, :3]\nv.mul_(2)\nv += 1\nreturn v @ y[:3], y.t().exp()"
    ),
    "a part of what is transposed": "y = x.t().clone()\ny[1:5].add_(1)\ny[:, ::2] = 3\nreturn y",
    "a part of itself": "y = x.clone()\ny[:, ::2] *= 2\ny[:4] += x\nreturn y",
    "broadcast": "y = x.clone()\ny[:, 2:4] = x[0, 0]\nreturn y",
    "another dtype": "y = torch.zeros(4, 8, dtype=torch.float64)\ny[0] = x[0]\nreturn y",
    "masked": "y = x.clone()\ny.masked_fill_(x > 0, -1.0)\nreturn y",
    "activations": "y = x + 0\nF.relu(y, inplace=True)\nreturn F.silu(y, inplace=True), y",
    "unsqueezed": "y = x + 1\ny.unsqueeze_(0)\ny.mul_(2)\nreturn y",
    "returned and written": "y = x + 1\nv = y[0]\ny[0, 0] = 7\nreturn {'y': y, 'v': (v, [y[1]])}",
    "broadcast together": "a, b = torch.broadcast_tensors(x, x[0])\nreturn a * b",
    "dropped out": "return F.dropout(x, 0.5, training=False) + 1",
    "cast to what it is": "return x.to(torch.float32).contiguous().view(4, 8) * 2",
}


@pytest.mark.parametrize("forward", IN_PLACE.values(), ids=IN_PLACE)
def test_the_program_computes_what_the_model_computes(
    program: Program, write: Write, forward: str
) -> None:
    graph = program(forward)
    assert not [op.target for op in graph.operations if op.name.endswith("_")]
    x = torch.randn(4, 8)
    expected = tensors_of(load_problem(write(forward)).build()(x.clone()))
    found = interpret(graph, {"x": x})
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def tensors_of(result: object) -> list[torch.Tensor]:
    return torch.utils._pytree.tree_leaves(result)


def operators(graph: Graph) -> list[str]:
    return [op.name for op in graph.operations]


def test_what_returns_its_argument_is_no_operation(program: Program) -> None:
    forward = "return self.drop(x.contiguous().to(x.dtype).detach()).expand(4, 8).exp()"
    assert operators(program(forward, init="self.drop = nn.Dropout(0.5)")) == ["exp"]


def test_what_is_computed_in_place_on_a_part_is_put_back_once(program: Program) -> None:
    found = operators(program("y = x.clone()\ny[:, ::2] *= 2\nreturn y"))
    assert found == ["clone", "slice", "mul", "slice_scatter"]


def test_dropout_stays_in_training(program: Program) -> None:
    graph = program("return self.drop(x)", init="self.drop = nn.Dropout(0.5)", mode="train")
    assert operators(graph) == ["dropout"]


def test_a_view_that_nothing_reads_is_gone_and_compute_stays(program: Program) -> None:
    assert operators(program("x.t()\nx.exp()\nreturn x + 1")) == ["exp", "add"]


def test_an_update_of_a_buffer_is_noted(program: Program) -> None:
    graph = program(
        "self.count += 1\nreturn x * self.count",
        init="self.register_buffer('count', torch.zeros(()))",
    )
    assert graph.notes == ("forward updates state that later calls would see: count",)
    assert operators(graph) == ["add", "mul"]
