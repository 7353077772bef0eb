"""Normalisations, softmax and similarities are recognised however they are spelled."""

import pytest
from programs import Program, names

SPELLINGS = [
    ("rms_norm", "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)"),
    ("rms_norm", "return x / torch.sqrt(torch.mean(x * x, dim=1, keepdim=True) + 1e-5)"),
    ("rms_norm", "return x / (x.square().mean(-1).sqrt() + 1e-8).unsqueeze(-1)"),
    ("rms_norm", "return x * (x.pow(2).mean(-1, keepdim=True) + 1e-6) ** -0.5"),
    ("rms_norm", "return x / torch.sqrt((x**2).sum(-1, keepdim=True) / x.shape[-1] + 1e-6)"),
    ("rms_norm", "return x * torch.rsqrt((x * x).sum(-1, True) * (1 / 8) + 1e-6)"),
    ("rms_norm", "return x / (x.norm(2, dim=-1, keepdim=True) * 8 ** -0.5 + 1e-8)"),
    ("rms_norm", "return x / (x.norm(dim=-1, keepdim=True) / math.sqrt(8)).clamp(min=1e-6)"),
    (
        "rms_norm",
        "return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, True) + 1e-6)).type_as(x)",
    ),
    (
        "layer_norm",
        "return (x - x.mean(-1, True)) / torch.sqrt(x.var(-1, False, keepdim=True) + 1e-5)",
    ),
    ("layer_norm", "return (x - x.mean(-1, True)) / (x.std(-1, False, True) + 1e-5)"),
    (
        "standardize",
        "return (x - x.mean(-1, True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5)",
    ),
    ("standardize", "return (x - x.mean(-1, True)) / (x.std(-1, keepdim=True) + 1e-5)"),
    (
        "layer_norm",
        "return (x - x.mean(1, True)) * torch.rsqrt((x - x.mean(1, True)).pow(2).mean(1, True))",
    ),
    ("layer_norm", "d = x - x.mean(-1, True)\nreturn d / (d.pow(2).mean(-1, True) + 1e-5).sqrt()"),
    (
        "layer_norm",
        "v, m = torch.var_mean(x, -1, correction=0, keepdim=True)\n"
        "return (x - m) * (v + 1e-5).rsqrt()",
    ),
    (
        "layer_norm",
        """\
        m = x.sum(-1, keepdim=True) / 8
        v = (x * x).sum(-1, keepdim=True) / 8 - m * m
        return (x - m) / torch.sqrt(v + 1e-5)
        """,
    ),
    ("softmax", "e = torch.exp(x - x.max(-1, keepdim=True)[0])\nreturn e / e.sum(-1, True)"),
    ("softmax", "e = (x - x.amax(1, keepdim=True)).exp()\nreturn e / e.sum(1).unsqueeze(1)"),
    ("softmax", "return torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)"),
    ("softmax", "return torch.exp(x - torch.logsumexp(x, dim=-1, keepdim=True))"),
    ("softmax", "return F.softmax(x - x.max(dim=-1, keepdim=True).values, dim=-1)"),
    ("softmax", "return F.log_softmax(x, dim=-1).exp()"),
    ("softmax", "e = x.exp()\nreturn e * (1.0 / e.sum(dim=-1, keepdim=True))"),
    ("log_softmax", "return x - torch.logsumexp(x, -1, keepdim=True)"),
    ("log_softmax", "d = x - x.amax(-1, True)\nreturn d - d.exp().sum(-1, True).log()"),
    ("log_softmax", "return torch.log(F.softmax(x, dim=-1))"),
    ("logsumexp", "return x.exp().sum(-1).log()"),
    ("logsumexp", "m = x.amax(-1, True)\nreturn m + torch.log(torch.exp(x - m).sum(-1, True))"),
    (
        "logsumexp",
        "m, _ = x.max(1)\nreturn (x - m[:, None]).exp().sum(1).log() + m",
    ),
    ("l1_norm", "return x / x.abs().sum(1, keepdim=True)"),
    ("l1_norm", "return x / torch.norm(x, p=1, dim=-1, keepdim=True)"),
    ("l1_norm", "return F.normalize(x, p=1.0, dim=-1)"),
    ("l1_norm", "return x / torch.abs(x).sum(-1, True).clamp_min(1e-12)"),
    ("l2_norm", "return F.normalize(x, dim=-1)"),
    ("l2_norm", "return x / x.norm(dim=1, keepdim=True)"),
    ("l2_norm", "return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-12)"),
    ("l2_norm", "return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)"),
    ("l2_norm", "return x / torch.linalg.norm(x, dim=-1, keepdim=True).clamp(min=1e-12)"),
    ("l2_norm", "return x / x.pow(2).sum(1, True).sqrt().clamp(min=1e-6)"),
    ("frobenius_norm", "return x / torch.norm(x, p='fro')"),
    ("frobenius_norm", "return x / torch.sqrt((x**2).sum())"),
    ("frobenius_norm", "return x / torch.linalg.norm(x)"),
    ("frobenius_norm", "return x / torch.linalg.matrix_norm(x)"),
]


@pytest.mark.parametrize(("operation", "forward"), SPELLINGS)
def test_a_spelling_of_it_is_one_kernel(program: Program, operation: str, forward: str) -> None:
    assert names(program(forward)) == [operation]


NOT_QUITE = {
    "another exponent": ("rms_norm", "return x * (x.pow(3).mean(-1, True) + 1e-6).rsqrt()"),
    "another count": ("rms_norm", "return x / torch.sqrt((x**2).sum(-1, True) / 5 + 1e-6)"),
    "the mean of another tensor": (
        "layer_norm",
        "return (x - (x + 1).mean(-1, True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5)",
    ),
    "two dimensions": (
        "layer_norm",
        "return (x - x.mean(0, True)) / torch.sqrt(x.var(1, keepdim=True) + 1e-5)",
    ),
    "the sum of something else": ("softmax", "return x.exp() / (x + 1).exp().sum(1, True)"),
    "the sum over another dimension": (
        "softmax",
        "return (x - x.amax(0, True)).exp() / (x - x.amax(0, True)).exp().sum(1, True)",
    ),
    "without the log": ("log_softmax", "return x - x.exp().sum(-1, keepdim=True)"),
    "added to": ("logsumexp", "return (x.exp() + 1).sum(-1).log()"),
    "the sum of squares": ("l1_norm", "return x / (x * x).sum(-1, True)"),
    "the norm of another tensor": ("l2_norm", "return x / (x + 1).norm(dim=1, keepdim=True)"),
    "the sum of cubes": ("frobenius_norm", "return x / torch.sqrt((x**3).sum())"),
}


@pytest.mark.parametrize(("operation", "forward"), NOT_QUITE.values(), ids=NOT_QUITE)
def test_what_is_not_quite_it_stays_as_it_is(
    program: Program, operation: str, forward: str
) -> None:
    assert operation not in names(program(forward))


OWNED = "self.g = nn.Parameter(torch.ones(8))\nself.b = nn.Parameter(torch.zeros(8))"
SCALED = {
    "layer_norm, as usual": (
        "layer_norm",
        """\
        m = x.mean(-1, keepdim=True)
        v = (x - m).pow(2).mean(-1, keepdim=True)
        return self.g * (x - m) / torch.sqrt(v + 1e-5) + self.b
        """,
    ),
    "rms_norm, scaled at once": (
        "rms_norm",
        "return x * (self.g * torch.rsqrt(x.pow(2).mean(-1, True) + 1e-6))",
    ),
    "rms_norm, one added to the weight": (
        "rms_norm",
        "return x * torch.rsqrt(x.pow(2).mean(-1, True) + 1e-6) * (1.0 + self.g.float())",
    ),
    "rms_norm, by normalising to length one": (
        "rms_norm",
        "return F.normalize(x, dim=-1) * 8**0.5 * self.g",
    ),
    "rms_norm, that and one added": (
        "rms_norm",
        "return F.normalize(x, dim=-1) * (self.g + 1) * 8**0.5",
    ),
}


@pytest.mark.parametrize(("operation", "forward"), SCALED.values(), ids=SCALED)
def test_its_weight_and_bias_belong_to_it(program: Program, operation: str, forward: str) -> None:
    assert names(program(forward, init=OWNED)) == [operation]


def test_a_factor_that_is_no_weight_stays_outside(program: Program) -> None:
    graph = program(
        "return x * torch.rsqrt(x.pow(2).mean(-1, True) + 1e-6) * y",
        arguments="x, y",
        inputs="torch.randn(4, 8), torch.randn(4, 8)",
    )
    assert names(graph) == ["rms_norm", "mul"]


@pytest.mark.parametrize(
    ("dims", "operation"),
    [("(2, 3)", "instance_norm"), ("(0, 2, 3)", "batch_norm"), ("(1, 2, 3)", "layer_norm")],
)
def test_a_normalisation_is_named_by_its_dimensions(
    program: Program, dims: str, operation: str
) -> None:
    graph = program(
        f"d = {dims}\nreturn (x - x.mean(d, True)) / (x.var(d, False, True) + 1e-5).sqrt()",
        inputs="torch.randn(2, 6, 4, 5)",
    )
    assert names(graph) == [operation]


CHANNELS = "self.g = nn.Parameter(torch.ones(6))\nself.b = nn.Parameter(torch.zeros(6))"
GROUPED = {
    "groups in a dimension of their own": (
        "group_norm",
        """\
        h = x.view(2, 3, 2, 4, 5)
        m = h.mean(dim=(2, 3, 4), keepdim=True)
        v = h.var(dim=(2, 3, 4), keepdim=True, unbiased=False)
        h = ((h - m) / torch.sqrt(v + 1e-5)).view(2, 6, 4, 5)
        return h * self.g.view(1, -1, 1, 1) + self.b.view(1, -1, 1, 1)
        """,
    ),
    "a row for each group": (
        "group_norm",
        """\
        h = x.reshape(2 * 3, -1)
        h = (h - h.mean(-1, keepdim=True)) * torch.rsqrt(h.var(-1, keepdim=True) + 1e-5)
        return h.reshape(x.shape) * self.g[:, None, None]
        """,
    ),
    "no weights": (
        "group_norm",
        """\
        h = x.view(2, 3, -1)
        m = h.mean(2, keepdim=True)
        return ((h - m) / ((h - m).pow(2).mean(2, keepdim=True) + 1e-5).sqrt()).view(x.shape)
        """,
    ),
    "each channel its own group": (
        "instance_norm",
        """\
        h = x.flatten(2)
        h = (h - h.mean(-1, keepdim=True)) / torch.sqrt(h.var(-1, keepdim=True) + 1e-5)
        return h.view(x.shape) * self.g[:, None, None] + self.b[:, None, None]
        """,
    ),
    "over the channels of an image": (
        "layer_norm",
        """\
        m = x.mean(1, keepdim=True)
        s = (x - m).pow(2).mean(1, keepdim=True)
        h = (x - m) / torch.sqrt(s + 1e-6)
        return self.g[:, None, None] * h + self.b[:, None, None]
        """,
    ),
}


@pytest.mark.parametrize(("operation", "forward"), GROUPED.values(), ids=GROUPED)
def test_channels_are_normalised_in_groups(program: Program, operation: str, forward: str) -> None:
    graph = program(forward, inputs="torch.randn(2, 6, 4, 5)", init=CHANNELS)
    assert names(graph) == [operation]


def test_parts_of_an_image_are_no_groups_of_channels(program: Program) -> None:
    forward = """\
    h = x.view(2, 6, 2, 2, 5)
    m = h.mean(dim=(3, 4), keepdim=True)
    return ((h - m) / torch.sqrt(h.var(dim=(3, 4), keepdim=True) + 1e-5)).view(x.shape)
    """
    assert "group_norm" not in names(program(forward, inputs="torch.randn(2, 6, 4, 5)"))


RUNNING = (
    """\
self.register_buffer("running_mean", torch.zeros(6))
self.register_buffer("running_var", torch.ones(6))
"""
    + CHANNELS
)
FROZEN = {
    "as it is defined": """\
        c = (1, -1, 1, 1)
        h = (x - self.running_mean.view(c)) / torch.sqrt(self.running_var.view(c) + 1e-5)
        return h * self.g.view(c) + self.b.view(c)
        """,
    "as one scale and one shift": """\
        w, b = self.g.reshape(1, -1, 1, 1), self.b.reshape(1, -1, 1, 1)
        scale = w * (self.running_var.reshape(1, -1, 1, 1) + 1e-5).rsqrt()
        bias = b - self.running_mean.reshape(1, -1, 1, 1) * scale
        return x * scale + bias
        """,
}


@pytest.mark.parametrize("forward", FROZEN.values(), ids=FROZEN)
def test_normalising_by_what_was_learnt_is_a_batch_norm(program: Program, forward: str) -> None:
    assert names(program(forward, inputs="torch.randn(2, 6, 4, 5)", init=RUNNING)) == ["batch_norm"]


def test_a_layer_norm_with_a_samples_deviation_and_weights_keeps_its_name(
    program: Program,
) -> None:
    forward = "return self.g * (x - x.mean(-1, True)) / (x.std(-1, keepdim=True) + 1e-6) + self.b"
    assert names(program(forward, inputs="torch.randn(5, 6)", init=CHANNELS)) == ["layer_norm"]


def test_a_scale_and_a_shift_alone_are_no_batch_norm(program: Program) -> None:
    forward = "return x * self.g[:, None, None] + self.b[:, None, None]"
    assert names(program(forward, inputs="torch.randn(2, 6, 4, 5)", init=CHANNELS)) == [
        "mul",
        "add",
    ]


def test_casts_there_and_back_belong_to_it(program: Program) -> None:
    graph = program(
        "y = x.float()\nreturn (y * torch.rsqrt(y.pow(2).mean(-1, True) + 1e-6)).to(x.dtype)",
        inputs="torch.randn(4, 8, dtype=torch.bfloat16)",
    )
    assert names(graph) == ["rms_norm"]


def test_a_weight_in_the_lower_precision_belongs_to_it(program: Program) -> None:
    graph = program(
        """\
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.g.to(torch.bfloat16) * h.to(x.dtype)
        """,
        init=OWNED,
        inputs="torch.randn(4, 8, dtype=torch.bfloat16)",
    )
    assert names(graph) == ["rms_norm"]


def test_a_cast_that_others_read_is_a_kernel_of_its_own(program: Program) -> None:
    graph = program(
        "y = x.float()\nreturn y * torch.sigmoid(y), y",
        inputs="torch.randn(4, 8, dtype=torch.bfloat16)",
    )
    assert names(graph) == ["cast", "silu"]


SIMILAR = {
    "over the product of the norms": "return (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1))",
    "with a floor": "return (x * y).sum(1) / (x.norm(dim=1) * y.norm(dim=1)).clamp(min=1e-8)",
    "norms by hand": """\
        a, b = (x * x).sum(-1).sqrt(), (y * y).sum(-1).sqrt()
        return torch.sum(x * y, dim=-1) / (a * b + 1e-8)
        """,
    "of normalised vectors": "return (F.normalize(x, dim=-1) * F.normalize(y, dim=-1)).sum(-1)",
    "the operator": "return F.cosine_similarity(x, y, dim=-1)",
}


@pytest.mark.parametrize("forward", SIMILAR.values(), ids=SIMILAR)
def test_the_angle_between_two_vectors_is_one_kernel(program: Program, forward: str) -> None:
    graph = program(forward, arguments="x, y", inputs="torch.randn(4, 8), torch.randn(4, 8)")
    assert names(graph) == ["cosine_similarity"]


def test_a_product_over_one_norm_is_no_cosine(program: Program) -> None:
    forward = "return (x * y).sum(-1) / (x.norm(dim=-1) * x.norm(dim=-1))"
    graph = program(forward, arguments="x, y", inputs="torch.randn(4, 8), torch.randn(4, 8)")
    assert "cosine_similarity" not in names(graph)


MEANS = {
    "masked_mean": "mask = (y > 0).float()\nreturn (x * mask).sum(1) / mask.sum(1).clamp(min=1)",
    "weighted_mean": "w = 1 / (y * y + 1)\nreturn (x * w).sum(1) / w.sum(1)",
}


@pytest.mark.parametrize(("name", "forward"), MEANS.items(), ids=MEANS)
def test_a_mean_by_a_mask_and_one_by_computed_weights(
    program: Program, name: str, forward: str
) -> None:
    graph = program(forward, arguments="x, y", inputs="torch.randn(4, 8), torch.randn(4, 8)")
    assert [kernel for kernel in names(graph) if "mean" in kernel] == [name]
