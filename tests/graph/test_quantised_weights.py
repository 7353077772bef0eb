"""A weight of a tensor subclass, such as a quantised one, is the plain tensors that it holds."""

from programs import Program, names
from quantised_tensor import QUANTISED

from runner.graph import Graph

IN_PYTHON = """
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is F.linear:
            x, weight, bias = args
            return x @ weight.integers.to(x.dtype).t() * weight.scale.flatten() + bias
        return super().__torch_function__(func, types, args, kwargs)
"""
INIT = """
    self.fc = nn.Linear(8, 6)
    weight = self.fc.weight.detach()
    scale = weight.abs().amax(1, keepdim=True) / 127
    integers = torch.round(weight / scale).to(torch.int8)
    self.fc.weight = nn.Parameter(Quantised(integers, scale), requires_grad=False)
"""


def state_paths(graph: Graph) -> list[str]:
    return sorted(state.path for state in graph.states.values())


def operations(graph: Graph) -> list[str]:
    return [op.name for op in graph.operations if not op.view]


def test_a_program_reads_the_integers_and_their_scales(program: Program) -> None:
    graph = program("return self.fc(x)", init=INIT, classes=QUANTISED + IN_PYTHON)
    assert state_paths(graph) == ["fc.bias", "fc.weight.integers", "fc.weight.scale"]
    assert operations(graph) == ["to", "matmul", "mul", "add"]


def test_operators_that_a_subclass_runs_below_the_dispatcher_are_the_programs(
    program: Program,
) -> None:
    graph = program("return self.fc(x)", init=INIT, classes=QUANTISED)
    assert state_paths(graph) == ["fc.bias", "fc.weight.integers", "fc.weight.scale"]
    assert operations(graph) == ["mul", "addmm"]


def test_the_original_has_each_plain_tensor_as_a_weight(program: Program) -> None:
    graph = program("return self.fc(x)", init=INIT, classes=QUANTISED + IN_PYTHON)
    assert sorted(graph.state_names) == ["fc.bias", "fc.weight.integers", "fc.weight.scale"]


def test_a_scale_is_computed_as_the_author_computes_it(program: Program) -> None:
    graph = program("return self.fc(x)", init=INIT, classes=QUANTISED + IN_PYTHON)
    scale = next(s for s in graph.states.values() if s.path == "fc.weight.scale")
    assert scale.recipe is not None
    assert [op.name for op in scale.recipe.operations][-2:] == ["amax", "div"]


def test_a_weight_made_of_packed_integers_and_scales_is_dequantised(program: Program) -> None:
    graph = program(
        "w = torch.stack((self.packed >> 4, self.packed & 15), -1).flatten(1) * self.scales\n"
        "return x @ w.t()",
        init="""
        self.register_buffer("packed", torch.randint(0, 256, (6, 4), dtype=torch.uint8))
        self.register_buffer("scales", torch.rand(6, 1))
        """,
    )
    assert names(graph) == ["dequantize", "matmul"]
