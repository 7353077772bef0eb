"""What the tree says of a kernel: when two are one workload, when one family, and how they work."""

from typing import Any

import pytest
from outlines import Apart

from runner.tree.kernel_description import describe_kernel

MODEL = """
class {cls}(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {x}):
        {forward}

class Model({cls}):
    pass

def get_inputs(): return [{inputs}]
def get_init_inputs(): return []
"""

Described = dict[str, Any]


def kernels(apart: Apart, init: str, forward: str, inputs: str, **names: str) -> list[Described]:
    """The kernels of a model, in the order in which they run, as the tree describes them."""
    text = {"cls": "Author", "x": "x"} | names
    program, root = apart(MODEL.format(init=init, forward=forward, inputs=inputs, **text), "level3")
    return [describe_kernel(program, kernel) for kernel in root.kernels()]


def linear(apart: Apart, init: str = "nn.Linear(16, 4)", inputs: str = "rand(8, 16)") -> Described:
    (only,) = kernels(apart, f"self.fc = {init}", "return self.fc(x)", f"torch.{inputs}")
    return only


def test_names_of_modules_classes_and_variables_make_no_difference(apart: Apart) -> None:
    mine = linear(apart)
    (theirs,) = kernels(
        apart,
        "self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(16, 4))])",
        "return self.blocks[0](hidden)",
        "torch.rand(8, 16)",
        cls="Head",
        x="hidden",
    )
    assert mine == theirs


def test_the_same_kernel_is_one_workload_wherever_it_stands_in_a_model(apart: Apart) -> None:
    alone = linear(apart)
    *_, last = kernels(
        apart,
        "self.first = nn.Linear(16, 16)\n        self.second = nn.Linear(16, 4)",
        "return self.second(torch.relu(self.first(x)))",
        "torch.rand(8, 16)",
    )
    assert last["identity"] == alone["identity"]


def test_the_values_that_weights_start_from_make_no_difference(apart: Apart) -> None:
    starts = ("torch.randn(16)", "torch.zeros(16) + 1.5", "torch.linspace(0, 1, 16)")
    found = {
        kernels(apart, f"self.w = nn.Parameter({start})", "return x + self.w", "torch.rand(8, 16)")[
            0
        ]["identity"]
        for start in starts
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    ("init", "inputs", "same_family"),
    [
        ("nn.Linear(32, 4)", "rand(8, 32)", True),
        ("nn.Linear(16, 4)", "rand(9, 16)", True),
        ("nn.Linear(16, 4)", "rand(16, 8).t()", True),
        ("nn.Linear(16, 4, bias=False)", "rand(8, 16)", False),
        ("nn.Linear(16, 4)", "rand(2, 8, 16)", False),
        ("nn.Linear(16, 4).double()", "rand(8, 16).double()", False),
    ],
)
def test_sizes_strides_bias_and_dtypes_tell_workloads_apart(
    apart: Apart, init: str, inputs: str, same_family: bool
) -> None:
    mine, theirs = linear(apart), linear(apart, init, inputs)
    assert mine["identity"] != theirs["identity"]
    assert (mine["family"] == theirs["family"]) == same_family


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x.softmax(-1)", "x.softmax(0)"),
        ("x + 1", "x + 1.0"),
        ("x - 1", "1 - x"),
        ("x.roll(1, 0)", "x.roll(2, 0)"),
        ("F.gelu(x)", "F.gelu(x, approximate='tanh')"),
        ("x.clamp(0, 1)", "x.clamp(0, 2)"),
    ],
)
def test_what_is_computed_tells_workloads_apart(apart: Apart, one: str, other: str) -> None:
    found = [kernels(apart, "pass", f"return {e}", "torch.rand(8, 8)")[-1] for e in (one, other)]
    assert found[0]["identity"] != found[1]["identity"]


def test_a_convolution_says_its_window_and_its_family_leaves_out_what_is_usual(
    apart: Apart,
) -> None:
    (conv,) = kernels(
        apart,
        "self.m = nn.Conv2d(3, 8, 7, stride=2, padding=3)",
        "return self.m(x)",
        "torch.rand(1, 3, 32, 32)",
    )
    assert conv["operation"] == "conv2d"
    assert conv["attributes"] == {
        "kernel_size": [7, 7], "stride": [2, 2], "padding": [3, 3], "dilation": [1, 1], "groups": 1,
    }  # fmt: skip
    expected = "conv2d(kernel_size=7, stride=2, padding=3) on 4-d float32 with 2 weights"
    assert conv["family"] == expected


def test_a_pool_says_its_stride_where_that_is_not_its_window(apart: Apart) -> None:
    said = [
        kernels(apart, "pass", f"return F.max_pool2d(x, {how})", "torch.rand(1, 4, 8, 8)")[0]
        for how in ("3", "3, 1", "3, 1, 1")
    ]
    strides = [kernel["attributes"]["stride"] for kernel in said]
    paddings = [kernel["attributes"]["padding"] for kernel in said]
    assert (strides, paddings) == ([[3, 3], [1, 1], [1, 1]], [[0, 0], [0, 0], [1, 1]])
    assert len({kernel["family"] for kernel in said}) == 3


def test_a_depthwise_convolution_is_one_family_over_its_channels(apart: Apart) -> None:
    families = []
    for channels, groups in ((32, 32), (64, 64), (64, 4)):
        (conv,) = kernels(
            apart,
            f"self.m = nn.Conv2d({channels}, {channels}, 3, groups={groups}, bias=False)",
            "return self.m(x)",
            f"torch.rand(1, {channels}, 8, 8)",
        )
        families.append(conv["family"])
    assert families[0] == families[1]
    assert families[1:] == [
        "conv2d(kernel_size=3, depthwise) on 4-d float32 with 1 weight",
        "conv2d(kernel_size=3, groups=4) on 4-d float32 with 1 weight",
    ]


def test_attributes_are_json_even_where_numbers_are_infinite(apart: Apart) -> None:
    *_, masked = kernels(
        apart,
        "self.register_buffer('mask', torch.ones(4, 4, dtype=torch.bool).triu(1))",
        "return x.masked_fill(self.mask, float('-inf'))",
        "torch.rand(4, 4)",
    )
    assert masked["attributes"] == {"value": "-inf"}


def test_a_kernel_of_several_operations_says_whose_argument_each_is(apart: Apart) -> None:
    (norm,) = kernels(
        apart,
        "self.w = nn.Parameter(torch.ones(8))",
        "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w",
        "torch.rand(4, 8)",
    )
    assert norm["operation"] == "rms_norm"
    assert norm["attributes"] == {"mean_dim": [-1], "add_other": 1e-06}


@pytest.mark.parametrize(
    ("init", "forward", "expected"),
    [
        ("nn.LayerNorm(8)", "self.m(x)", {"eps": 1e-05, "normalized_shape": [8]}),
        ("nn.BatchNorm1d(8)", "self.m(x)", {"training": False, "momentum": 0.1, "eps": 1e-05}),
        ("nn.GroupNorm(4, 8, eps=1e-6)", "self.m(x)", {"eps": 1e-06, "num_groups": 4}),
        ("nn.LeakyReLU()", "self.m(x)", {"negative_slope": 0.01}),
        ("nn.Softmax(-1)", "self.m(x)", {"dim": -1}),
        ("nn.Identity()", "x.sum(1, keepdim=True)", {"dim": [1], "keepdim": True}),
        (
            "nn.Conv1d(8, 8, 3, groups=8)",
            "self.m(x)",
            {"kernel_size": [3], "stride": [1], "padding": [0], "dilation": [1], "groups": 8},
        ),
    ],
)
def test_a_kernel_says_its_arguments_where_they_are_the_usual_ones_too(
    apart: Apart, init: str, forward: str, expected: dict[str, object]
) -> None:
    *_, kernel = kernels(apart, f"self.m = {init}", f"return {forward}", "torch.rand(2, 8, 8)")
    assert kernel["attributes"] == expected


def test_an_attention_says_which_positions_it_sees(apart: Apart) -> None:
    (kernel,) = kernels(
        apart,
        "self.register_buffer('mask', torch.ones(8, 8).tril())",
        "return ((x @ x.mT).masked_fill(self.mask == 0, float('-inf'))).softmax(-1) @ x",
        "torch.rand(2, 8, 8)",
    )
    assert kernel["operation"] == "scaled_dot_product_attention"
    assert kernel["attributes"]["causal"] is True
