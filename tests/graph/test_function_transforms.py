"""Forwards that transform functions with torch.func become programs of torch's plain operators."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from programs import Write

from runner.cli import cli
from runner.graph.tracing.capture import capture

OVER_PAIRS = "torch.vmap(torch.vmap({}, (None, 0)), (0, None))"
PROGRAMS = {
    "a mask of positions": """
        def mask(q, k):
            return (k <= q) & (q - k < 3)
        over = {pairs}
        return F.scaled_dot_product_attention(x, x, x, attn_mask=over(*2 * [torch.arange(4)]))
    """.format(pairs=OVER_PAIRS.format("mask")),
    "a mask that looks into a tensor": """
        def bias(q, k):
            return self.table[(q - k).clamp(0, 2)]
        over = {pairs}
        return x.softmax(-1).T @ over(*2 * [torch.arange(4)])
    """.format(pairs=OVER_PAIRS.format("bias")),
    "a number beside each sample's": """
        return torch.vmap(lambda row: 0.1 * row.square().sum())(x)
    """,
    "a number beside each sample's in half precision": """
        return torch.vmap(lambda row: 0.1 * row.square().sum())(x.half())
    """,
    "chunks of a batch": "return torch.vmap(lambda row: row.cumsum(0), chunk_size=3)(x)",
    "one batch among the results": """
        return torch.vmap(lambda row: (row.exp(), row.flip(0).sum()), out_dims=(1, 0))(x)
    """,
    "an ensemble": """
        def call(weight, row):
            return torch.func.functional_call(self.linear, {"weight": weight}, (row,))
        return torch.vmap(call, in_dims=(0, None))(self.weights, x).mean(0)
    """,
    "a gradient": """
        force, energy = torch.func.grad_and_value(lambda r: (r.sin() * self.table[0]).sum())(x)
        return energy, -force
    """,
    "a gradient for each sample": """
        return torch.vmap(torch.func.grad(lambda row: row.tanh().sum()))(x)
    """,
    "second derivatives for each sample": """
        def energy(row):
            return (self.linear(row) + self.weights[0, :, 0]).tanh().sum()
        return torch.vmap(torch.func.hessian(energy))(x)
    """,
    "a derivative along a direction": """
        return torch.func.jvp(lambda r: r.sin() * r, (x,), (torch.ones_like(x),))[1]
    """,
}
STRANGERS = ("an ensemble", "a gradient for each sample", "a mask that looks into a tensor")
"""Programs whose directories are judged as strangers' too."""
assert {*STRANGERS} <= PROGRAMS.keys()
INIT = """
self.table = nn.Parameter(torch.randn(3))
self.linear = nn.Linear(8, 5, bias=False)
self.weights = nn.Parameter(torch.randn(4, 5, 8))
"""


@pytest.mark.parametrize("forward", PROGRAMS.values(), ids=PROGRAMS)
def test_a_forward_that_transforms_functions_needs_no_values(write: Write, forward: str) -> None:
    assert capture(write(forward, init=INIT)).capture == "fake"


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_transform_is_the_plain_operators_that_it_calls(
    write: Write, tmp_path: Path, name: str
) -> None:
    """The command works in a child of a server: where autograd has run, torch cannot fork."""
    problem, output = write(PROGRAMS[name], init=INIT), tmp_path / "apart"
    done = run("decompose", problem.path, "--output", output)
    assert "to the last bit" in done
    if name in STRANGERS:
        run("verify", output / "custom/problem")


def run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)
    assert done.return_value == 0, done.output
    return done.stdout
