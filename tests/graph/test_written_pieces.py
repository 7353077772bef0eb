"""Writes into parts of one tensor that nobody reads in between are one kernel."""

import pytest
from programs import Program, names
from test_kernels import assert_sound

from runner.graph import recognize

FILLS = {
    "rows": ("stack", "out = torch.zeros(4, 8)\nfor t in range(4):\n    out[t] = x[t].exp()"),
    "columns": (
        "stack",
        "out = x.new_empty(4, 8)\nfor t in reversed(range(8)):\n    out[:, t] = x[:, t].exp()",
    ),
    "single elements": (
        "stack",
        "out = torch.empty(2, 2)\n"
        "for i in range(2):\n    for j in range(2):\n        out[i, j] = (x[i] * x[j]).sum()",
    ),
    "numbers of another dtype": (
        "stack",
        "out = torch.zeros(4, 8, dtype=torch.float64)\nfor t in range(4):\n    out[t] = x[t].exp()",
    ),
    "slices": ("cat", "out = torch.zeros_like(x)\nout[:, :3] = x[:, 5:]\nout[:, 3:] = x[:, :5]"),
    "every other column": (
        "cat",
        "out = torch.empty_like(x)\nout[:, ::2] = x[:, 4:].exp()\nout[:, 1::2] = x[:, :4].exp()",
    ),
    "one row twice": (
        "slice_update",
        "out = torch.zeros(4, 8)\nfor t in (0, 1, 2, 2):\n    out[t] = x[t].exp()",
    ),
    "not all rows": (
        "slice_update",
        "out = torch.zeros(4, 8)\nfor t in range(3):\n    out[t] = x[t].exp()",
    ),
    "a tensor that is no new one": (
        "slice_update",
        "out = x.exp()\nfor t in range(4):\n    out[t] = x[t].sin()",
    ),
}


@pytest.mark.parametrize(("name", "forward"), FILLS.values(), ids=FILLS)
def test_writes_that_fill_a_tensor_are_one_kernel(
    program: Program, name: str, forward: str
) -> None:
    graph = program(f"{forward}\nreturn out")
    assert names(graph)[-1] == name
    assert sum(n in {"slice_update", "stack", "cat"} for n in names(graph)) == 1
    assert_sound(graph)


def test_a_tensor_that_is_read_between_the_writes_is_several_kernels(program: Program) -> None:
    graph = program(
        """\
        out = torch.zeros(4, 8)
        out[0] = x[0].exp()
        out[1] = x[1].exp()
        for t in (2, 3):
            out[t] = out[t - 1].sin()
        return out
        """
    )
    assert names(graph) == ["exp", "exp", "slice_update", "sin", "slice_update", "sin",
                            "slice_update"]  # fmt: skip
    assert_sound(graph)


def test_writes_of_several_modules_are_several_kernels(program: Program) -> None:
    graph = program(
        "out = torch.zeros(2, 8)\nself.a(out, x)\nself.b(out, x)\nreturn out",
        init="self.a, self.b = Row(0), Row(1)",
        classes="""\
class Row(nn.Module):
    def __init__(self, row):
        super().__init__()
        self.row, self.linear = row, nn.Linear(8, 8)
    def forward(self, out, x):
        out[self.row] = self.linear(x[self.row])
""",
    )
    assert names(graph).count("slice_update") == 2
    assert_sound(graph)


def test_a_filled_tensor_reads_no_tensor_that_only_gave_its_shape(program: Program) -> None:
    graph = program(
        """\
        h = x.exp()
        out = torch.zeros_like(h)
        for t in range(4):
            out[t] = h[t].sin()
        return out
        """
    )
    kernel = recognize(graph)[-1]
    read = {name for i in kernel.members for name in graph.operations[i].refs()}
    made = {name for i in kernel.members for name in graph.operations[i].outputs}
    assert kernel.operation == "stack"
    assert len(read - made) == 4
