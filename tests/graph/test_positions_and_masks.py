"""Rotations by position, masks and tables of positions are recognised however they are spelled."""

import pytest
from programs import Program, names

from runner.graph import recognize

ROPES = {
    "by halves": "h = torch.cat((-x[..., 4:], x[..., :4]), -1)\nreturn x * cos + h * sin",
    "by halves, sine first": """\
        a, b = x.chunk(2, -1)
        return (torch.cat((-b, a), dim=-1) * sin) + (x * cos)
        """,
    "interleaved": """\
        h = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
        return x * cos + h * sin
        """,
    "on transposed heads": """\
        x = x.view(2, 2, 8).transpose(0, 1)
        return x * cos + torch.cat((-x[..., 4:], x[..., :4]), -1) * sin
        """,
}


@pytest.mark.parametrize("forward", ROPES.values(), ids=ROPES)
def test_rotating_by_position_is_one_kernel(program: Program, forward: str) -> None:
    graph = program(
        forward,
        arguments="x, cos, sin",
        inputs="torch.randn(4, 8), torch.randn(8), torch.randn(8)",
    )
    assert names(graph) == ["rope"]


PAIRS = {
    "concatenated": "return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)",
    "stacked": "return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)",
}


@pytest.mark.parametrize("forward", PAIRS.values(), ids=PAIRS)
def test_rotating_pairs_is_one_kernel(program: Program, forward: str) -> None:
    graph = program(
        "a, b = x[..., ::2], x[..., 1::2]\n" + forward,
        arguments="x, cos, sin",
        inputs="torch.randn(4, 8), torch.randn(4), torch.randn(4)",
    )
    (kernel,) = recognize(graph)
    assert kernel.operation == "rope"
    assert [graph.operations[i].name for i in kernel.members[:2]] == ["slice", "slice"]


def test_a_rotation_gives_back_the_shape_that_it_is_given(program: Program) -> None:
    graph = program(
        "a, b = x[..., ::2], x[..., 1::2]\n"
        "turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)\n"
        "return self.out(turned)",
        arguments="x, cos, sin",
        inputs="torch.randn(4, 8), torch.randn(4), torch.randn(4)",
        init="self.out = nn.Linear(8, 8)",
    )
    rope, _ = recognize(graph)
    (turned,) = graph.operations[rope.members[-1]].outputs
    assert graph.values[turned].shape == (4, 8)


PARTIAL = {
    "the rest comes after": """\
        r, p = x[..., :4], x[..., 4:]
        h = torch.cat((-r[..., 2:], r[..., :2]), dim=-1)
        return torch.cat((r * cos + h * sin, p), dim=-1)
        """,
    "the rest comes first, pairs interleaved": """\
        p, r = x.split((4, 4), dim=-1)
        h = torch.stack((-r[..., 1::2], r[..., ::2]), dim=-1).flatten(-2)
        return torch.cat((p, r * cos + h * sin), dim=-1)
        """,
}


@pytest.mark.parametrize("forward", PARTIAL.values(), ids=PARTIAL)
def test_rotating_a_part_of_each_head_is_one_kernel(program: Program, forward: str) -> None:
    graph = program(
        forward,
        arguments="x, cos, sin",
        inputs="torch.randn(4, 8), torch.randn(4), torch.randn(4)",
    )
    assert names(graph) == ["rope"]


COMPLEX = {
    "multiplied as it is read": """\
        z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(z * angles).flatten(-2)
        """,
    "the table first": """\
        z = torch.view_as_complex(x.view(4, 4, 2))
        return torch.view_as_real(torch.mul(angles, z)).reshape(4, 8).type_as(x)
        """,
}


@pytest.mark.parametrize("forward", COMPLEX.values(), ids=COMPLEX)
def test_rotating_in_the_complex_plane_is_one_kernel(program: Program, forward: str) -> None:
    graph = program(
        forward,
        arguments="x, angles",
        inputs="torch.randn(4, 8), torch.randn(4, 4, dtype=torch.complex64)",
    )
    assert names(graph) == ["rope"]


THERE_AND_BACK = {
    "pairs": """\
        a, b = x[..., ::2].float(), x[..., 1::2].float()
        y = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
        return self.out(y.type_as(x))
        """,
    "pairs of one cast": """\
        a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
        y = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
        return self.out(y.type_as(x))
        """,
    "halves, in the dtype of the table": """\
        a, b = x.chunk(2, dim=-1)
        y = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
        return self.out(y.type_as(x))
        """,
    "the complex plane": """\
        z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) * angles
        return self.out(torch.view_as_real(z).flatten(-2).type_as(x))
        """,
}


@pytest.mark.parametrize("forward", THERE_AND_BACK.values(), ids=THERE_AND_BACK)
def test_casts_to_the_dtype_of_the_table_and_back_belong_to_a_rotation(
    program: Program, forward: str
) -> None:
    is_complex = "angles" in forward
    table = "torch.randn(4, 4, dtype=torch.complex64)" if is_complex else "*torch.randn(2, 4)"
    graph = program(
        forward,
        arguments="x, angles" if is_complex else "x, cos, sin",
        inputs=f"torch.randn(4, 8).bfloat16(), {table}",
        init="self.out = nn.Linear(8, 8, dtype=torch.bfloat16)",
    )
    assert names(graph) == ["rope", "linear"]


ROTARY = """\
def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

def table(length, size):
    speed = 10000 ** (-torch.arange(0, size, 2) / size)
    angles = torch.outer(torch.arange(length, dtype=torch.float32), speed)
    return angles.cos(), angles.sin()

class Rotary(nn.Module):
    def forward(self, q, k):
        cos, sin = table(q.shape[1], q.shape[-1])
        return rotate(q, cos, sin), rotate(k, cos, sin)

class Rotate(nn.Module):
    def forward(self, x, cos, sin):
        return rotate(x, cos, sin)

class Buffered(nn.Module):
    def __init__(self):
        super().__init__()
        cos, sin = table(16, 4)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def rotate(self, x):
        length = x.shape[1]
        return rotate(x, self.cos[:length].to(x.dtype), self.sin[:length].to(x.dtype))

    def forward(self, q, k):
        return self.rotate(q), self.rotate(k)
"""
TOGETHER = {
    "by a module that makes the table": "q, k = self.rotary(q, k)",
    "by a module that holds the table": "q, k = self.buffered(q, k)",
    "in two statements": (
        "cos, sin = table(5, 4)\nq = rotate(q, cos, sin)\nk = rotate(k, cos, sin)"
    ),
    "by a table that comes in": "c, s = x[0, :, :2].sin(), x[0, :, 2:4].exp()\n"
    "q, k = rotate(q, c, s), rotate(k, c, s)",
}


@pytest.mark.parametrize("rotated", TOGETHER.values(), ids=TOGETHER)
def test_a_query_and_a_key_that_one_call_rotates_are_one_kernel(
    program: Program, rotated: str
) -> None:
    graph = program(
        f"q, k = self.qk(x).view(2, 2, 5, 4).unbind(1)\n{rotated}\nreturn q, k + 1",
        inputs="torch.randn(2, 5, 8)",
        init="self.qk = nn.Linear(8, 8)\nself.rotary, self.buffered = Rotary(), Buffered()",
        classes=ROTARY,
    )
    kernels = recognize(graph)
    (rope,) = (kernel for kernel in kernels if kernel.operation == "rope")
    assert {k.operation for k in kernels} <= {"linear", "sin", "exp", "rope", "add"}
    cats = [i for i in rope.members if graph.operations[i].name == "cat"]
    assert len(cats) == 2, "both are rotated in it"


APART = {
    "two calls": "return rotate(q, c, s), self.rotate(k, c, s)",
    "two tables": "return rotate(q, c, s), rotate(k, s, c)",
    "one after the other": "q = rotate(q, c, s)\nreturn q, rotate(k + q.exp().sum(), c, s)",
}


@pytest.mark.parametrize("forward", APART.values(), ids=APART)
def test_other_rotations_are_a_kernel_each(program: Program, forward: str) -> None:
    graph = program(
        forward,
        arguments="q, k, c, s",
        inputs="torch.randn(5, 4), torch.randn(5, 4), torch.randn(5, 2), torch.randn(5, 2)",
        init="self.rotate = Rotate()",
        classes=ROTARY,
    )
    assert names(graph).count("rope") == 2


def test_a_table_for_all_layers_is_a_kernel_of_its_own(program: Program) -> None:
    forward = """\
    cos, sin = table(5, 4)
    for _ in range(2):
        q, k = self.qk(x).chunk(2, -1)
        x = x + rotate(q, cos, sin).repeat(1, 2) * rotate(k, cos, sin).repeat(1, 2)
    return x
    """
    graph = program(
        forward, inputs="torch.randn(5, 8)", init="self.qk = nn.Linear(8, 8)", classes=ROTARY
    )
    found = names(graph)
    assert (found.count("rope_table"), found.count("rope")) == (1, 2)


NO_ROPES = {
    "the rotation is halved": "return x * cos + torch.cat((-x[..., 4:], x[..., 2:6]), -1)",
    "no sign": "return x * cos + torch.cat((x[..., 4:], x[..., :4]), -1)",
    "another tensor is turned": (
        "y = x + 1\nreturn x * cos + torch.cat((-y[..., 4:], y[..., :4]), -1) * sin"
    ),
}


@pytest.mark.parametrize("forward", NO_ROPES.values(), ids=NO_ROPES)
def test_what_is_not_quite_a_rotation_stays_as_it_is(program: Program, forward: str) -> None:
    graph = program(
        forward,
        arguments="x, cos, sin",
        inputs="torch.randn(4, 8), torch.randn(8), torch.randn(8)",
    )
    assert "rope" not in names(graph)


TIMESTEPS = {
    "sine first": "a = t[:, None] * f[None]\nreturn torch.cat([a.sin(), a.cos()], dim=-1)",
    "cosine first": "a = t.view(-1, 1) * f\nreturn torch.cat((torch.cos(a), torch.sin(a)), 1)",
}


@pytest.mark.parametrize("forward", TIMESTEPS.values(), ids=TIMESTEPS)
def test_sines_and_cosines_of_what_comes_in_are_an_embedding(
    program: Program, forward: str
) -> None:
    graph = program(forward, arguments="t, f", inputs="torch.rand(4), torch.rand(8)")
    assert names(graph) == ["sinusoidal_embedding"]


def test_sines_of_two_products_are_no_embedding(program: Program) -> None:
    forward = "return torch.cat([(t * f).sin(), (t + f).cos()])"
    graph = program(forward, arguments="t, f", inputs="torch.rand(8), torch.rand(8)")
    assert "sinusoidal_embedding" not in names(graph)


# --- constants ---

MASKS = {
    "a lower triangle": ("causal_mask", "m = torch.tril(torch.ones(8, 8)) == 0"),
    "an upper triangle": ("causal_mask", "m = torch.ones(8, 8).triu(diagonal=1).bool()"),
    "positions compared": ("causal_mask", "i = torch.arange(8)\nm = i[None, :] > i[:, None]"),
    "two sides": (
        "window_mask",
        "i = torch.arange(8)\nd = i[:, None] - i[None, :]\nm = d.abs() > 2",
    ),
    "before, and near": (
        "window_mask",
        "i = torch.arange(8)\nq, k = i[:, None], i[None]\nm = (k > q) | (k <= q - 3)",
    ),
    "a band of triangles": (
        "window_mask",
        "m = torch.ones(8, 8).tril(0).triu(-2) == 0",
    ),
    "no order": ("constant", "m = torch.eye(8) == 0"),
    "no order, and a name": ("blocked", "blocked = torch.eye(8) == 0\nm = blocked"),
}


@pytest.mark.parametrize(("operation", "mask"), MASKS.values(), ids=MASKS)
def test_a_mask_that_two_kernels_read_says_who_may_see_whom(
    program: Program, operation: str, mask: str
) -> None:
    graph = program(
        mask + "\nreturn x.masked_fill(m, 0.0).exp().masked_fill(m, 1.0)",
        inputs="torch.randn(8, 8)",
    )
    assert names(graph) == [operation, "masked_fill", "exp", "masked_fill"]


SLOPES = "i = torch.arange(6)\ns = 2.0 ** -torch.arange(1, 5)\n"
BIASES = {
    "positions alone": ("alibi", "b = s[:, None, None] * i"),
    "distances": ("alibi", "b = (i[None] - i[:, None]).abs() * -s.view(4, 1, 1)"),
    "no slopes": ("positions", "b = i.float()"),
}


@pytest.mark.parametrize(("operation", "bias"), BIASES.values(), ids=BIASES)
def test_a_slope_for_each_head_times_the_distance_is_alibi(
    program: Program, operation: str, bias: str
) -> None:
    attention = (
        "\na = (x @ x.transpose(-1, -2) + b).softmax(-1) @ x"
        "\nreturn (a @ a.transpose(-1, -2) + b).softmax(-1) @ a"
    )
    graph = program(SLOPES + bias + attention, inputs="torch.randn(2, 4, 6, 8)")
    assert operation in names(graph)


def test_ones_where_a_token_may_be_seen_become_a_mask(program: Program) -> None:
    parts = {"arguments": "x, m", "inputs": "torch.randn(2, 6), torch.ones(2, 6)"}
    graph = program("h = (1.0 - m) * -1e9\nreturn x + h, x - h", **parts)
    assert names(graph) == ["attention_mask", "add", "sub"]
    graph = program("return x + (1.0 - m) * 0.5", **parts)
    assert "attention_mask" not in names(graph)


def test_slopes_that_no_softmax_sees_are_no_alibi(program: Program) -> None:
    forward = SLOPES + "b = s[:, None, None] * i\nreturn (x * b).relu() * b"
    assert "alibi" not in names(program(forward, inputs="torch.randn(2, 4, 6, 6)"))


TABLES = {
    "sine and cosine": "c, s = a.cos(), a.sin()\nreturn (x * c).relu() + x * s, c + x, s + x",
    "by a polar form": (
        "c = torch.polar(torch.ones_like(a), a)\n"
        "return (torch.complex(x, x) * c).real, (torch.complex(x, x).exp() * c).real"
    ),
}


@pytest.mark.parametrize("forward", TABLES.values(), ids=TABLES)
def test_sine_and_cosine_of_positions_are_one_table(program: Program, forward: str) -> None:
    angles = "a = torch.outer(torch.arange(4.0), 10000 ** (-torch.arange(8.0) / 8))\n"
    kernels = recognize(program(angles + forward))
    assert kernels[0].operation == "rope_table"


def test_a_table_that_is_added_is_an_embedding_of_positions(program: Program) -> None:
    forward = """\
    a = torch.outer(torch.arange(4.0), 10000 ** (-torch.arange(4.0) / 4))
    table = torch.cat((a.sin(), a.cos()), dim=-1)
    return (x + table).relu() + table
    """
    assert names(program(forward)) == ["sinusoidal_embedding", "add", "relu", "add"]


def test_a_mask_and_a_table_that_count_from_the_same_positions_are_two(program: Program) -> None:
    forward = """\
    i = torch.arange(8)
    angles = i[:, None].float() * (10000 ** (-torch.arange(8.0) / 8))
    c, s = angles.cos(), angles.sin()
    m = i[None, :] > i[:, None]
    h = (x * c + x.relu() * s).masked_fill(m, 0.0)
    return (h * c + h.relu() * s).masked_fill(m, 1.0)
    """
    graph = program(forward, inputs="torch.randn(8, 8)")
    assert {"arange", "rope_table", "causal_mask"} <= {k.operation for k in recognize(graph)}


def test_a_table_that_a_linear_layer_reads_is_an_embedding_of_a_time(program: Program) -> None:
    forward = """\
    a = torch.outer(torch.full((4,), 3.0), 10000 ** (-torch.arange(4.0) / 4))
    return x + F.linear(torch.cat((a.sin(), a.cos()), dim=-1), w)
    """
    graph = program(forward, arguments="x, w", inputs="torch.rand(4, 8), torch.rand(8, 8)")
    assert "sinusoidal_embedding" in names(graph)
    assert "rope_table" not in names(graph)


def test_a_table_that_is_joined_to_each_position_is_features_of_it(program: Program) -> None:
    forward = """\
    a = torch.outer(torch.linspace(-1.0, 1.0, 4), torch.linspace(1.0, 5.0, 3))
    features = torch.cat((a.sin(), a.cos()), dim=-1)
    return torch.cat((x, features), dim=-1).relu() + torch.cat((x * 2, features), dim=-1)
    """
    assert names(program(forward))[0] == "fourier_features"
