"""A layout copy belongs to the operation that it serves, and has a name where it serves none."""

import pytest
from programs import Program, names

from runner.graph import recognize

IMAGE = "torch.randn(2, 4, 6, 8)"
SERVES = {
    "its producer": ("return self.up(x).mT.contiguous() + x", ["linear", "add"]),
    "its producer, also as the model's result": (
        "return x.relu().permute(0, 2, 3, 1).contiguous()",
        ["relu"],
    ),
    "a reshape that copies": (
        "return self.up(x).transpose(1, 2).reshape(2, -1).relu()",
        ["linear", "relu"],
    ),
    "its reader, where its producer has another": (
        "h = x.exp()\nreturn self.up(h.mT.contiguous()[..., :8]) + h.sum()",
        ["exp", "linear", "sum", "add"],
    ),
    "the only reader of an input": (
        "return self.up(x.permute(0, 3, 1, 2).clone()[..., :8].contiguous())",
        ["linear"],
    ),
    "one after the other": (
        "return x.sin().mT.contiguous().permute(2, 1, 0, 3).contiguous().cos()",
        ["sin", "cos"],
    ),
    "an einsum that only permutes": (
        "return torch.einsum('bchw->bhwc', x.exp()).contiguous().relu()",
        ["exp", "relu"],
    ),
}


@pytest.mark.parametrize(("forward", "kernels"), SERVES.values(), ids=SERVES)
def test_a_copy_belongs_to_what_it_serves(
    program: Program, forward: str, kernels: list[str]
) -> None:
    init = "self.up = nn.Linear(8, 8)"
    assert sorted(names(program(forward, inputs="torch.randn(2, 4, 8, 8)", init=init))) == sorted(
        kernels
    )


NAMED = {
    "transpose_copy": "return x.transpose(1, 3).contiguous()",
    "permute_copy": "return x.permute(0, 2, 3, 1).contiguous()",
    "expand_copy": "return x[:, :, None].expand(2, 4, 3, 6, 8).contiguous()",
    "slice_copy": "return x[..., ::2].contiguous()",
    "copy": "return x.clone()",
}


@pytest.mark.parametrize(("operation", "forward"), NAMED.items(), ids=NAMED)
def test_a_copy_that_serves_nothing_is_called_what_it_does(
    program: Program, operation: str, forward: str
) -> None:
    assert names(program(forward, inputs=IMAGE)) == [operation]


def test_a_copy_that_two_kernels_read_besides_its_source_stands_alone(program: Program) -> None:
    forward = "h = x.exp()\nc = h.mT.contiguous()\nreturn c.sin(), c.cos(), h.tan()"
    found = names(program(forward, inputs=IMAGE))
    assert sorted(found) == ["cos", "exp", "sin", "tan", "transpose_copy"]


POINT = {
    "roll": "return x.exp().roll(1, 2).sin()",
    "pad": "return F.pad(x.exp(), (1, 1)).sin()",
    "flip": "return x.exp().flip(-1).sin()",
    "cat": "return torch.cat((x.exp(), x), 1).sin()",
    "window_partition": (
        "h = x.exp().view(2, 2, 2, 3, 2, 8)\n"
        "return h.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, 2, 2, 8).sin()"
    ),
    "channel_shuffle": (
        "return x.exp().view(2, 2, 2, 6, 8).transpose(1, 2).contiguous().view(2, 4, 6, 8).sin()"
    ),
}


def test_a_copy_that_one_call_keeps_for_the_next_stays_with_the_call_that_makes_it(
    program: Program,
) -> None:
    step = """
class Step(nn.Module):
    def forward(self, x, kept):
        return torch.cat((kept, x), 1).relu(), x.exp()[..., -2:].clone()
"""
    graph = program(
        "a, kept = self.step(x[..., :4], x[..., :2])\n"
        "b, kept = self.step(x[..., 4:6], kept)\nreturn a.sum() + b.sum()",
        init="self.step = Step()", classes=step, inputs="torch.randn(2, 8)",
    )  # fmt: skip
    assert all(
        len({op.scopes for op in map(graph.operations.__getitem__, kernel.members)}) == 1
        for kernel in recognize(graph)
        if kernel.operation == "cat"
    )


@pytest.mark.parametrize(("operation", "forward"), POINT.items(), ids=POINT)
def test_a_copy_that_is_the_point_stands_alone(
    program: Program, operation: str, forward: str
) -> None:
    assert names(program(forward, inputs=IMAGE)) == ["exp", operation, "sin"]


def test_a_copy_of_random_numbers_is_not_drawn_with_them(program: Program) -> None:
    forward = "return torch.rand(4, 8).T.contiguous() @ x"
    assert "rand" in names(program(forward))


def test_a_copy_may_not_join_what_waits_for_it_elsewhere(program: Program) -> None:
    graph = program("h = x.exp()\nc = h.T.contiguous()\nreturn c @ h, c.sum()")
    found = [kernel.operation for kernel in recognize(graph)]
    assert sorted(found) == ["exp", "matmul", "sum", "transpose_copy"]


# --- what depends on parameters alone ---

INIT = """\
self.up = nn.Linear(8, 8, bias=False)
self.one, self.two = nn.Parameter(torch.rand(4)), nn.Parameter(torch.rand(4))
self.log = nn.Parameter(torch.rand(8))
"""
OWNED = {
    "laid side by side for one layer": (
        "return F.linear(x, self.up.weight, torch.cat((self.one, self.two)))",
        ["linear"],
    ),
    "cast for one layer": (
        "return F.linear(x.double(), self.up.weight.double())",
        ["cast", "linear"],
    ),
    "a number times a function of it": (
        "return x * (16 * torch.sigmoid(self.log))",
        ["scaled_sigmoid", "mul"],
    ),
    "the negative of a function of it": (
        "return x * -torch.exp(self.log)",
        ["negative_exp", "mul"],
    ),
}


@pytest.mark.parametrize(("forward", "kernels"), OWNED.values(), ids=OWNED)
def test_what_is_made_of_parameters_alone_is_one_thing(
    program: Program, forward: str, kernels: list[str]
) -> None:
    assert sorted(names(program(forward, init=INIT))) == sorted(kernels)


def test_a_weight_that_is_made_from_others_by_a_product_is_a_kernel(program: Program) -> None:
    forward = "return F.linear(x, self.up.weight @ self.up.weight)"
    assert names(program(forward, init=INIT)) == ["matmul", "linear"]
