"""A module that stands for an operation is built, loaded and run: it does what that one did."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from runner.emit.code.module_choice import ModuleChoice, module_call
from runner.emit.code.operation_code import Expression, literal, spell
from runner.graph.ir import Arg, Graph, Operation, Ref, TensorSpec
from runner.graph.normalize import normalize
from runner.graph.tracing.capture import capture
from runner.problems import read_problem

VECTORS = "torch.randn(3, 8)"
SEQUENCE = "torch.randn(2, 5, 8)"
IMAGE = "torch.randn(2, 8, 6, 6)"
VOLUME = "torch.randn(2, 8, 4, 4, 4)"
STATE = "torch.zeros(1, 2, 4)"

# module as an author writes it -> (inputs, how it is written again)
MODULES = {
    "nn.Linear(8, 3)": ([VECTORS], "in_features=8, out_features=3"),
    "nn.Linear(8, 3, bias=False)": ([VECTORS], "in_features=8, out_features=3, bias=False"),
    "nn.Linear(8, 3, dtype=torch.bfloat16)": (
        ["torch.randn(3, 8, dtype=torch.bfloat16)"],
        "in_features=8, out_features=3, dtype=torch.bfloat16",
    ),
    "nn.Bilinear(8, 8, 3)": (
        [VECTORS, VECTORS],
        "in1_features=8, in2_features=8, out_features=3",
    ),
    "nn.Conv1d(5, 6, 3, dilation=2)": (
        [SEQUENCE],
        "in_channels=5, out_channels=6, kernel_size=3, dilation=2",
    ),
    "nn.Conv2d(8, 6, 3, stride=2, padding=1, bias=False)": (
        [IMAGE],
        "in_channels=8, out_channels=6, kernel_size=3, stride=2, padding=1, bias=False",
    ),
    "nn.Conv2d(8, 8, (3, 1), padding=(1, 0), groups=8)": (
        [IMAGE],
        "in_channels=8, out_channels=8, kernel_size=(3, 1), padding=(1, 0), groups=8",
    ),
    "nn.Conv2d(8, 6, 3, padding='same')": (
        [IMAGE],
        'in_channels=8, out_channels=6, kernel_size=3, padding="same"',
    ),
    "nn.Conv3d(8, 4, 2)": ([VOLUME], "in_channels=8, out_channels=4, kernel_size=2"),
    "nn.ConvTranspose1d(5, 6, 3)": ([SEQUENCE], "in_channels=5, out_channels=6, kernel_size=3"),
    "nn.ConvTranspose2d(8, 6, 3, 2, 1, 1, 2, True, 2)": (
        [IMAGE],
        "in_channels=8, out_channels=6, kernel_size=3, stride=2, padding=1, output_padding=1, groups=2, dilation=2",  # noqa: E501
    ),
    "nn.ConvTranspose3d(8, 4, 2, bias=False)": (
        [VOLUME],
        "in_channels=8, out_channels=4, kernel_size=2, bias=False",
    ),
    "nn.BatchNorm1d(8)": ([VECTORS], "num_features=8"),
    "nn.BatchNorm1d(5)": ([SEQUENCE], "num_features=5"),
    "nn.BatchNorm2d(8, eps=0.001, momentum=0.03)": (
        [IMAGE],
        "num_features=8, eps=0.001, momentum=0.03",
    ),
    "nn.BatchNorm2d(8, affine=False)": ([IMAGE], "num_features=8, affine=False"),
    "nn.BatchNorm2d(8, track_running_stats=False)": (
        [IMAGE],
        "num_features=8, track_running_stats=False",
    ),
    "nn.BatchNorm3d(8)": ([VOLUME], "num_features=8"),
    "nn.InstanceNorm2d(8)": ([IMAGE], "num_features=8"),
    "nn.InstanceNorm1d(5, affine=True)": ([SEQUENCE], "num_features=5, affine=True"),
    "nn.InstanceNorm2d(8, track_running_stats=True)": (
        [IMAGE],
        "num_features=8, track_running_stats=True",
    ),
    "nn.LayerNorm(8)": ([SEQUENCE], "normalized_shape=8"),
    "nn.LayerNorm((6, 6), eps=1e-6)": ([IMAGE], "normalized_shape=(6, 6), eps=1e-6"),
    "nn.LayerNorm(8, bias=False)": ([SEQUENCE], "normalized_shape=8, bias=False"),
    "nn.LayerNorm(8, elementwise_affine=False)": (
        [SEQUENCE],
        "normalized_shape=8, elementwise_affine=False",
    ),
    "nn.RMSNorm(8)": ([SEQUENCE], "normalized_shape=8"),
    "nn.RMSNorm(8, eps=1e-6)": ([SEQUENCE], "normalized_shape=8, eps=1e-6"),
    "nn.GroupNorm(2, 8)": ([IMAGE], "num_groups=2, num_channels=8"),
    "nn.GroupNorm(2, 8, affine=False)": ([IMAGE], "num_groups=2, num_channels=8, affine=False"),
    "nn.Embedding(10, 4)": (
        ["torch.randint(0, 10, (2, 3))"],
        "num_embeddings=10, embedding_dim=4",
    ),
    "nn.Embedding(10, 4, padding_idx=0)": (
        ["torch.randint(0, 10, (2, 3))"],
        "num_embeddings=10, embedding_dim=4, padding_idx=0",
    ),
    "nn.PReLU()": ([IMAGE], ""),
    "nn.PReLU(8)": ([IMAGE], "num_parameters=8"),
    "nn.LSTM(8, 4, batch_first=True)": (
        [SEQUENCE, f"({STATE}, {STATE})"],
        "input_size=8, hidden_size=4, batch_first=True",
    ),
    "nn.LSTM(8, 4, num_layers=2, bidirectional=True, dropout=0.1)": (
        [SEQUENCE, "(torch.zeros(4, 5, 4), torch.zeros(4, 5, 4))"],
        "input_size=8, hidden_size=4, num_layers=2, dropout=0.1, bidirectional=True",
    ),
    "nn.LSTM(8, 4, proj_size=3, bias=False)": (
        [SEQUENCE, "(torch.zeros(1, 5, 3), torch.zeros(1, 5, 4))"],
        "input_size=8, hidden_size=4, bias=False, proj_size=3",
    ),
    "nn.GRU(8, 4, batch_first=True, bias=False)": (
        [SEQUENCE, STATE],
        "input_size=8, hidden_size=4, bias=False, batch_first=True",
    ),
    "nn.RNN(8, 4, batch_first=True)": (
        [SEQUENCE, STATE],
        "input_size=8, hidden_size=4, batch_first=True",
    ),
    "nn.RNN(8, 4, nonlinearity='relu', batch_first=True)": (
        [SEQUENCE, STATE],
        'input_size=8, hidden_size=4, nonlinearity="relu", batch_first=True',
    ),
    "nn.LSTMCell(8, 4)": (
        [VECTORS, "(torch.zeros(3, 4), torch.zeros(3, 4))"],
        "input_size=8, hidden_size=4",
    ),
    "nn.GRUCell(8, 4)": ([VECTORS, "torch.zeros(3, 4)"], "input_size=8, hidden_size=4"),
    "nn.RNNCell(8, 4, bias=False)": (
        [VECTORS, "torch.zeros(3, 4)"],
        "input_size=8, hidden_size=4, bias=False",
    ),
}


def captured(
    folder: Path, module: str, inputs: list[str], forward: str = "", mode: Any = "eval"
) -> Graph:
    """A model that holds one module and calls it, or does what `forward` says."""
    (folder / "one.py").write_text(
        f"""
import torch
from torch import nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = {module}

    def forward(self, *inputs):
        return {forward or "self.block(*inputs)"}


def get_inputs():
    return [{", ".join(inputs)}]


def get_init_inputs():
    return []
"""
    )
    return normalize(capture(read_problem(folder / "one.py"), mode))


def found(graph: Graph, **options: Any) -> tuple[Operation, ModuleChoice | None]:
    """The only operation that is not a view or a creation, and its module."""

    def is_state(name: str) -> bool:
        return name in graph.states and graph.states[name].kind != "constant"

    calls = [(op, module_call(op, graph.values, is_state, **options)) for op in graph.operations]
    return next(
        ((op, call) for op, call in calls if call is not None), (graph.operations[-1], None)
    )


def numbers(graph: Graph, op: Operation) -> dict[str, torch.Tensor]:
    """A tensor for each value that an operation reads.

    A weight asks for its gradient, as in a model: whether it does decides how torch multiplies.
    """
    torch.manual_seed(0)
    tensors = {}
    for name in dict.fromkeys(op.refs()):
        spec = graph.values[name]
        dtype = getattr(torch, spec.dtype)
        drawn = torch.rand(spec.shape) if spec.floating else torch.randint(0, 9, spec.shape)
        tensors[name] = drawn.to(dtype)
        if name in graph.states and graph.states[name].kind == "parameter":
            tensors[name].requires_grad_()
    return tensors


def given(arg: Arg, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(arg, tuple):
        return tuple(given(item, tensors) for item in arg)
    return tensors[arg.name] if isinstance(arg, Ref) else arg


def built(call: ModuleChoice, tensors: dict[str, torch.Tensor]) -> nn.Module:
    """The module with its weights; each state that it has is mapped or said to be extra."""
    text = ", ".join(f"{name}={value}" for name, value in call.arguments)
    module = eval(f"nn.{call.cls}({text})", {"nn": nn, "torch": torch}).eval()
    state = module.state_dict()
    assert {*state} == {*dict(call.weights), *call.extra}
    module.load_state_dict(
        {a: tensors[v] for a, v in call.weights} | {k: state[k] for k in call.extra}
    )
    return module


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("written", MODULES)
def test_a_module_is_written_again_and_computes_the_same_bits(tmp_path, written):
    inputs, arguments = MODULES[written]
    graph = captured(tmp_path, written, inputs)
    op, call = found(graph)
    assert call is not None
    assert call.cls == written.partition("(")[0].removeprefix("nn.")
    assert ", ".join(f"{name}={value}" for name, value in call.arguments) == arguments

    tensors = numbers(graph, op)
    text = spell(op, lambda name: Expression(name)).text
    with torch.no_grad():
        expected = eval(text, {"torch": torch, "F": nn.functional, **tensors})
        actual = built(call, tensors)(*(given(arg, tensors) for arg in call.inputs))
    names = [f"out_{i}" for i in range(len(op.outputs))]
    scope: dict[str, Any] = {"actual": actual}
    exec(f"{call.unpack.format(*names)} = actual", scope)
    outputs = expected if isinstance(expected, tuple) else (expected,)
    for name, tensor in zip(names, outputs, strict=True):
        assert torch.equal(scope[name], tensor)
        assert scope[name].stride() == tensor.stride()


# What the model computes from its weights, or what a module would do differently.
NO_MODULE = {
    "a weight that is computed": (
        "nn.Linear(8, 3)",
        VECTORS,
        "F.linear(inputs[0], self.block.weight * 2)",
    ),
    "a weight that is read transposed": (
        "nn.Linear(8, 3)",
        "torch.randn(5, 3)",
        "F.linear(inputs[0], self.block.weight.t())",
    ),
    "a bias that is no weight": (
        "nn.Linear(8, 3)",
        VECTORS,
        "F.linear(inputs[0], self.block.weight, inputs[0][0, :3])",
    ),
    "weights in channels last": (
        "nn.Conv2d(8, 6, 3).to(memory_format=torch.channels_last)",
        IMAGE,
        "self.block(inputs[0])",
    ),
    "statistics of the batch where there are stored ones": (
        "nn.BatchNorm2d(8)",
        IMAGE,
        "F.batch_norm(inputs[0], self.block.running_mean, self.block.running_var, training=True)",
    ),
    "a scale without a shift": (
        "nn.BatchNorm2d(8, track_running_stats=False)",
        IMAGE,
        "F.batch_norm(inputs[0], None, None, self.block.weight, training=True)",
    ),
    "a shift without a scale": (
        "nn.LayerNorm(8)",
        VECTORS,
        "F.layer_norm(inputs[0], (8,), None, self.block.bias)",
    ),
    "an activation": ("nn.ReLU()", VECTORS, "self.block(inputs[0])"),
}


@pytest.mark.parametrize("reason", NO_MODULE)
def test_there_is_no_module_for(tmp_path, reason):
    module, inputs, forward = NO_MODULE[reason]
    assert found(captured(tmp_path, module, [inputs], forward))[1] is None


def test_in_training_a_batch_norm_is_the_module_that_is_called_in_training(tmp_path):
    graph = captured(tmp_path, "nn.BatchNorm2d(8)", [IMAGE], mode="train")
    assert found(graph)[1] is None
    _, call = found(graph, training=True)
    assert call is not None
    assert call.cls == "BatchNorm2d"
    assert call.extra == ("num_batches_tracked",)


def test_a_table_of_integers_is_no_module():
    specs = {"ids": TensorSpec((2,), "int64", (1,)), "table": TensorSpec((4, 4), "int32", (4, 1))}
    args = (Ref("table"), Ref("ids"))
    op = Operation("embedding.default", args, (), ("out",), schema=("weight", "indices"))
    assert module_call(op, specs, lambda name: name == "table") is None


def test_inputs_keep_the_structure_that_the_call_is_given(tmp_path):
    inputs, _ = MODULES["nn.LSTM(8, 4, batch_first=True)"]
    _, call = found(captured(tmp_path, "nn.LSTM(8, 4, batch_first=True)", inputs))
    assert call is not None
    assert call.unpack == "{}, ({}, {})"
    source, state = call.inputs
    assert isinstance(source, Ref)
    assert literal(state, Expression).text.count(",") == 1
