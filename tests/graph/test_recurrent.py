"""Recurrent layers on fake tensors: the shapes of the real ones, at no cost."""

import itertools
import time

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from runner.graph.tracing.recurrent_shapes import skip_unrolling

LAYERS = {
    "gru": nn.GRU,
    "lstm": nn.LSTM,
    "rnn_tanh": nn.RNN,
    "rnn_relu": lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k),
    "lstm_projected": lambda *a, **k: nn.LSTM(*a, proj_size=4, **k),
}


def in_a_model(layer: nn.Module) -> nn.Module:
    """torch 2.9 exports no recurrent layer by itself: the layer replaces its weights by aliases."""
    return nn.Sequential(layer)


def exported(layer: nn.Module, x: torch.Tensor) -> list[tuple[torch.Size, tuple[int, ...]]]:
    program = torch.export.export(in_a_model(layer), (x,), strict=False)
    (output,) = (n for n in program.graph.nodes if n.op == "output")
    values = [n.meta["val"] for n in torch.fx.node.map_arg(output.args[0], lambda n: n)]
    assert not any("tanh.default" in str(n.target) for n in program.graph.nodes), "unrolled"
    return [(v.shape, v.stride()) for v in values]


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(
    ("batch_first", "bidirectional", "layers"),
    [*itertools.product([False, True], [False, True], [1, 2])],
)
def test_shapes_and_strides_are_those_of_the_real_layer(
    name: str, batch_first: bool, bidirectional: bool, layers: int
) -> None:
    layer = LAYERS[name](
        *(5, 7, layers), batch_first=batch_first, bidirectional=bidirectional
    ).eval()
    x = torch.randn(3, 6, 5)
    with torch.no_grad():
        output, state = layer(x)
        real = [output, *(state if isinstance(state, tuple) else (state,))]
        with skip_unrolling():
            assert exported(layer, x) == [(t.shape, t.stride()) for t in real]


def test_a_long_sequence_costs_no_more_than_a_short_one() -> None:
    with FakeTensorMode(), torch.no_grad(), skip_unrolling():
        layer, x = nn.GRU(8, 8, num_layers=6, bidirectional=True), torch.randn(100_000, 1, 8)
        start = time.perf_counter()
        torch.export.export(in_a_model(layer), (x,), strict=False)
    assert time.perf_counter() - start < 20


def test_real_tensors_are_computed_as_ever_and_nothing_stays_behind() -> None:
    layer, x = nn.GRU(5, 7), torch.randn(4, 2, 5)
    before = dict(torch.ops.aten.gru.input.py_kernels)
    with torch.no_grad():
        expected, _ = layer(x)
        with skip_unrolling():
            assert torch.equal(layer(x)[0], expected)
    assert torch.ops.aten.gru.input.py_kernels == before
