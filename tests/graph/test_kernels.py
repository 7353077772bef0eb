"""Every compute operation is in exactly one kernel, and kernels can run one after the other."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest
from growth import times_longer
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import Program, names

from runner.graph import Graph, recognize
from runner.graph.dataflow import Flow, GroupedFlow
from runner.graph.ir import Input, Operation, Ref, State, TensorSpec


def assert_sound(graph: Graph) -> None:
    """Compute in one kernel, which reads only what earlier ones made, and no view of a weight."""
    kernels = recognize(graph)
    inside = Counter(member for kernel in kernels for member in kernel.members)
    compute = {i for i, op in enumerate(graph.operations) if not op.view}
    assert {i: inside[i] for i in compute} == dict.fromkeys(compute, 1)
    producers = graph.producers()
    ready = {*graph.states, *(given.name for given in graph.inputs)}

    def available(name: str) -> bool:
        if name not in ready:
            op = graph.operations[producers[name]]
            if op.view and all(map(available, op.refs())):
                ready.update(op.outputs)
        return name in ready

    for kernel in kernels:
        assert list(kernel.members) == sorted(kernel.members)
        made: set[str] = set()
        for member in kernel.members:
            op = graph.operations[member]
            assert all(name in made or available(name) for name in op.refs()), kernel
            assert not any(of_state_view(graph, name, producers) - made for name in op.refs())
            made.update(op.outputs)
        ready |= made
    assert all(map(available, graph.output_names()))


def of_state_view(graph: Graph, name: str, producers: dict[str, int]) -> set[str]:
    """The value, if it is a view of a state."""
    value = name
    while value in producers and graph.operations[producers[value]].view:
        value = next(graph.operations[producers[value]].refs())
    return {name} if value in graph.states and value != name else set()


# --- modules ---

RMS_NORM = """\
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x):
        n = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return {result}
"""


def test_a_small_module_is_one_kernel_named_after_its_class(program: Program) -> None:
    classes = RMS_NORM.format(name="ScaledNorm", result="self.weight * n.clamp(-3, 3)")
    graph = program("return self.norm(x) + x", init="self.norm = ScaledNorm()", classes=classes)
    assert names(graph) == ["scaled_norm", "add"]
    assert_sound(graph)


NAMED_BY_THE_FIELD = [
    ("rms_norm", "MyRMSNorm", "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w"),
    ("silu", "Swish", "x * torch.sigmoid(x)"),
    ("gelu", "BloomGelu", "x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))"),
]


@pytest.mark.parametrize(("operation", "cls", "result"), NAMED_BY_THE_FIELD)
def test_a_small_module_that_is_a_formula_is_called_what_its_field_calls_it(
    program: Program, operation: str, cls: str, result: str
) -> None:
    classes = f"""\
    class {cls}(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(8))

        def forward(self, x):
            return {result}
    """
    kernels = recognize(
        program("return self.norm(x) + x", init=f"self.norm = {cls}()", classes=classes)
    )
    assert [kernel.operation for kernel in kernels] == [operation, "add"]
    assert cls in kernels[0].reason


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ("self.weight * n, n", "two values leave it"),
        ("F.relu(F.gelu(self.weight * n + 1))", "two layers of the field in a row"),
        ("F.dropout(self.weight * n.exp(), 0.1, training=True)", "random"),
        ("torch.softmax(self.weight * n.exp(), -1)", "a softmax is an operation of its own"),
        ("F.linear(n.exp(), self.weight)", "a contraction"),
    ],
)
def test_a_module_that_is_more_than_a_formula_is_not(
    program: Program, result: str, why: str
) -> None:
    classes = RMS_NORM.format(name="ScaledNorm", result=result)
    graph = program("return self.norm(x)", init="self.norm = ScaledNorm()", classes=classes)
    assert "scaled_norm" not in names(graph), why
    assert_sound(graph)


def test_the_model_itself_and_a_module_of_one_operation_are_no_groups(program: Program) -> None:
    graph = program(
        "return self.residual(x.exp().abs(), x)",
        init="self.residual = Residual()",
        classes="""\
        class Residual(nn.Module):
            def forward(self, x, y):
                return x + y
        """,
    )
    assert names(graph) == ["exp", "abs", "add"]


def test_a_scale_that_has_a_module_to_itself_is_named_after_its_class(program: Program) -> None:
    graph = program(
        "return self.scale(x) + x",
        init="self.scale = LayerScale()",
        classes="""\
        class LayerScale(nn.Module):
            def __init__(self):
                super().__init__()
                self.gamma = nn.Parameter(torch.ones(8))

            def forward(self, x):
                return x * self.gamma
        """,
    )
    assert names(graph) == ["layer_scale", "add"]


def test_a_contraction_with_its_own_bias_is_named_after_its_class(program: Program) -> None:
    graph = program(
        "return self.experts(x)",
        inputs="torch.randn(5, 2, 8)",
        init="self.experts = ExpertLinear()",
        classes="""\
        class ExpertLinear(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(2, 3, 8))
                self.bias = nn.Parameter(torch.ones(2, 3))

            def forward(self, x):
                return torch.einsum("tei,eoi->teo", x, self.weight) + self.bias
        """,
    )
    (kernel,) = recognize(graph)
    assert (kernel.operation, kernel.kind) == ("expert_linear", "contraction")


def test_a_rearrangement_takes_its_views_along(program: Program) -> None:
    graph = program(
        "return self.shuffle(x)",
        inputs="torch.randn(2, 6, 4, 4)",
        init="self.shuffle = ChannelShuffle()",
        classes="""\
        class ChannelShuffle(nn.Module):
            def forward(self, x):
                y = x.view(2, 3, 2, 4, 4).transpose(1, 2).contiguous()
                return y.view(2, 6, 4, 4)
        """,
    )
    (kernel,) = recognize(graph)
    assert kernel.operation == "channel_shuffle"
    assert [graph.operations[i].name for i in kernel.members] == ["view", "transpose", "contiguous"]


# --- constants and weights ---


def test_a_mask_is_made_in_the_only_kernel_that_reads_it(program: Program) -> None:
    graph = program(
        "mask = torch.triu(torch.ones(8, 8, dtype=torch.bool), 1)\n"
        "return x.masked_fill(mask, float('-inf')).softmax(-1)",
        inputs="torch.randn(8, 8)",
    )
    assert names(graph) == ["masked_fill", "softmax"]
    assert_sound(graph)


MASKS = {
    "a triangle": "mask = torch.tril(torch.ones(8, 8)) == 0",
    "a comparison": "i = torch.arange(8)\nmask = i[None, :] > i[:, None]",
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_a_mask_that_two_kernels_read_is_a_kernel_without_inputs(
    program: Program, mask: str
) -> None:
    graph = program(
        mask + "\nreturn x.masked_fill(mask, 0.0).exp().masked_fill(mask, 1.0)",
        inputs="torch.randn(8, 8)",
    )
    assert names(graph) == ["causal_mask", "masked_fill", "exp", "masked_fill"]
    assert_sound(graph)


def test_sine_and_cosine_of_positions_are_one_table(program: Program) -> None:
    graph = program(
        """\
        angles = torch.outer(torch.arange(4.0), 10000 ** (-torch.arange(8.0) / 8))
        cos, sin = angles.cos(), angles.sin()
        return (x * cos).relu() + x * sin, cos + x, sin + x
        """
    )
    kernels = recognize(graph)
    assert kernels[0].operation == "rope_table"
    assert {"outer", "cos", "sin"} <= {graph.operations[i].name for i in kernels[0].members}
    assert_sound(graph)


COMPUTED = {
    "the author's variable": ("blur", "blur = a[:, None] * a / 64\nw = blur[None, None]"),
    "the author's function": ("blur_filter", "w = get_blur_filter(a)"),
    "the author's module": ("binomial", "w = self.filter(a)"),
    "no name that says anything": ("constant", "w = (a[:, None] * a / 64)[None, None]"),
}
FILTERS = """\
def get_blur_filter(a):
    out = a[:, None] * a
    return (out / 64)[None, None]

class Binomial(nn.Module):
    def forward(self, a):
        return get_blur_filter(a)
"""


@pytest.mark.parametrize(("name", "weight"), COMPUTED.values(), ids=COMPUTED)
def test_weights_computed_from_numbers_are_a_kernel_by_their_authors_name(
    program: Program, name: str, weight: str
) -> None:
    graph = program(
        f"a = torch.tensor([1.0, 3.0, 3.0, 1.0])\n{weight}\nreturn F.conv2d(x, w)",
        inputs="torch.randn(1, 1, 8, 8)",
        init="self.filter = Binomial()",
        classes=FILTERS,
    )
    assert names(graph) == [name, "conv2d"]
    assert_sound(graph)


def test_no_formula_is_looked_for_in_constants(program: Program) -> None:
    graph = program(
        "d = torch.arange(5.0) - 2\ng = torch.exp(-(d**2) / 4)\nbell = g / g.sum()\n"
        "return F.conv1d(x, bell[None, None])",
        inputs="torch.randn(1, 1, 8)",
    )
    assert names(graph) == ["bell", "conv1d"]


def test_each_kernel_works_out_the_single_numbers_that_it_reads(program: Program) -> None:
    graph = program(
        "n = torch.tensor(x.shape[1]) * 2 + 1\nscale = torch.sqrt(torch.tensor(16.0))\n"
        "return (x / n).relu() / n / scale + x * scale"
    )
    assert not {"add", "sqrt", "constant"} & {*names(graph)[:2]}
    assert names(graph) == ["div", "relu", "div", "div", "mul", "add"]


def test_a_constant_that_is_returned_is_a_kernel(program: Program) -> None:
    graph = program("zero = torch.zeros(4, 8)\nreturn x + zero, zero")
    assert names(graph) == ["zeros", "add"]


def test_a_softmax_of_a_constant_is_a_kernel_of_its_name(program: Program) -> None:
    graph = program("b = torch.zeros(4, 8)\nreturn x * b.softmax(-1)")
    assert names(graph) == ["softmax", "mul"]


def test_a_buffer_is_compared_where_the_result_is_read(program: Program) -> None:
    graph = program(
        "return x.masked_fill(self.mask[:4, :8] == 0, 0.0)",
        init="self.register_buffer('mask', torch.tril(torch.ones(9, 9)))",
    )
    (kernel,) = recognize(graph)
    assert kernel.operation == "masked_fill"
    assert_sound(graph)


def test_what_is_computed_from_parameters_is_a_kernel_of_its_own(program: Program) -> None:
    graph = program("return x * self.w.exp()", init="self.w = nn.Parameter(torch.ones(8))")
    assert names(graph) == ["exp", "mul"]


def test_a_view_of_a_weight_is_part_of_each_kernel_that_reads_it(program: Program) -> None:
    graph = program(
        "w = self.w.t()\nreturn (x @ w).relu() @ w",
        init="self.w = nn.Parameter(torch.ones(8, 8))",
    )
    first, _, second = recognize(graph)
    assert [graph.operations[i].name for i in first.members] == ["t", "matmul"]
    assert first.members[0] == second.members[0]
    assert_sound(graph)


def test_compute_that_nothing_reads_is_a_kernel_all_the_same(program: Program) -> None:
    assert names(program("x.exp()\nreturn x + 1")) == ["exp", "add"]


def test_a_module_that_computes_something_for_nobody_is_no_single_kernel(program: Program) -> None:
    graph = program(
        "return self.gate(x)",
        init="self.gate = Gate()",
        classes="""\
        class Gate(nn.Module):
            def forward(self, x):
                x.cumsum(0).exp()
                return x * torch.tanh(x)
        """,
    )
    assert names(graph) == ["cumsum", "exp", "tanh", "mul"]
    assert_sound(graph)


# --- order ---


def spec(*shape: int) -> TensorSpec:
    return TensorSpec(shape, "float32", (1,) * len(shape))


def chain(*reads: tuple[str, tuple[str, ...]]) -> Graph:
    """A program of one-element values v0, v1, ... from (operator, what it reads)."""
    operations = tuple(
        Operation(f"{name}.default", tuple(map(Ref, refs)), (), (f"v{i}",), view=name == "view")
        for i, (name, refs) in enumerate(reads)
    )
    values = {name: spec(1) for name in ("x", "w", *(f"v{i}" for i in range(len(reads))))}
    last = Ref(operations[-1].outputs[0])
    states = {"w": State("w", "parameter")}
    return Graph("Model", "fake", "eval", (Input("x", "x"),), states, operations, values, last)


def test_two_groups_that_would_wait_for_each_other_are_refused() -> None:
    flow = Flow(chain(("exp", "x"), ("exp", "x"), ("neg", ("v0",)), ("neg", ("v1",))))
    contracted = GroupedFlow(flow)
    assert contracted.allows({0, 3})
    assert contracted.allows({1, 2})
    contracted.add({0, 3})
    assert not contracted.allows({1, 2})


def test_a_group_that_waits_for_itself_is_refused() -> None:
    flow = Flow(chain(("exp", "x"), ("neg", ("v0",)), ("add", ("v0", "v1"))))
    assert not GroupedFlow(flow).allows({0, 2})
    assert GroupedFlow(flow).allows({0, 1, 2})


def test_random_numbers_are_drawn_in_the_authors_order(program: Program) -> None:
    graph = program(
        "a = F.dropout(x)\nb = torch.rand(8)\nreturn F.dropout(a.exp()) + b", mode="train"
    )
    flow = Flow(graph)
    drawing = [i for i, op in enumerate(graph.operations) if op.name in {"dropout", "rand"}]
    assert [flow.users[i][-1] for i in drawing[:-1]] == drawing[1:]
    assert names(graph) == ["dropout", "rand", "exp", "dropout", "add"]


OPERATORS = ["sigmoid", "mul", "mul", "add", "exp", "neg", "view", "arange", "relu", "tanh", "topk"]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_random_programs_are_sound(data: st.DataObject) -> None:
    reads: list[tuple[str, tuple[str, ...]]] = []
    for i in range(data.draw(st.integers(2, 24))):
        name = data.draw(st.sampled_from(OPERATORS))
        known = ["x", "w", *(f"v{k}" for k in range(max(0, i - 5), i))]
        arity = {"mul": 2, "add": 2, "arange": 0}.get(name, 1)
        refs = tuple(data.draw(st.sampled_from(known)) for _ in range(arity))
        reads.append((name, refs))
    assert_sound(chain(*reads))


def test_recognising_takes_time_in_proportion_to_the_operations() -> None:
    block = [("sigmoid", 1), ("mul", 2), ("exp", 1), ("add", 2), ("rsqrt", 1), ("mul", 3)]

    def of_length(operations: int) -> Callable[[], None]:
        reads: list[tuple[str, tuple[str, ...]]] = [("neg", (name,)) for name in ("x", "v0", "v1")]
        while len(reads) < operations:
            for name, back in block:
                near = f"v{len(reads) - 1}"
                far = f"v{len(reads) - back}"
                reads.append((name, (near, far) if name in {"mul", "add"} else (near,)))
        graph = chain(*reads)

        def run() -> None:
            silus = sum(kernel.operation == "silu" for kernel in recognize(graph))
            assert silus > operations // 6 - 10

        return run

    assert times_longer(of_length, 300, 8) < 8 * 3


def test_recognising_needs_no_torch() -> None:
    text = "import runner.graph, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
