"""One file a workload, and what the file is called."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outlines import Apart

from runner.emit.naming.value_names import camel_case, identifier, make_unique
from runner.graph.normalize import normalize
from runner.graph.recognition.recognize import recognize
from runner.graph.tracing.capture import capture
from runner.problems import read_problem
from runner.tree.document import Tree
from runner.tree.interface import Program
from runner.tree.partition import partition
from runner.tree.workload import digest, workloads

pytestmark = pytest.mark.long

MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        {forward}

def get_inputs(): return [{inputs}]
def get_init_inputs(): return []
"""


def names(apart: Apart, init: str, forward: str, inputs: str, level: str = "level3") -> list[str]:
    """File names of a model's kernels, in the order in which they run."""
    program, root = apart(MODEL.format(init=init, forward=forward, inputs=inputs), level)
    known = workloads(program, root)
    return [known[id(kernel)].name for kernel in root.kernels()]


def without_digest(name: str) -> str:
    """A name without the digest that stands for the inside of a block."""
    return re.sub(r"_[0-9a-f]{4}(?=_[a-z0-9]+$)", "", name)


@pytest.mark.parametrize(
    ("init", "forward", "inputs", "name"),
    [
        ("self.m = nn.Linear(768, 3072)", "return self.m(x)", "torch.rand(2, 768)",
         "linear_768x3072_on_2_fp32"),
        ("self.m = nn.Conv2d(3, 64, 7, stride=2, padding=3)", "return self.m(x)",
         "torch.rand(1, 3, 32, 32)", "conv2d_3x64_k7s2p3_on_1x32x32_fp32"),
        ("self.m = nn.Conv2d(8, 8, (3, 5), groups=8, dilation=2)", "return self.m(x)",
         "torch.rand(1, 8, 32, 32)", "conv2d_8x8_k3x5d2g8_on_1x32x32_fp32"),
        ("self.m = nn.ConvTranspose1d(4, 6, 3, stride=2, output_padding=1)", "return self.m(x)",
         "torch.rand(1, 4, 9)", "conv_transpose1d_4x6_k3s2o1_on_1x9_fp32"),
        ("pass", "return torch.relu(x)", "torch.rand(10, 64, 112, 112)",
         "relu_10x64x112x112_fp32"),
        ("pass", "return F.max_pool2d(x, 3, 2, 1)", "torch.rand(1, 4, 8, 8)",
         "max_pool2d_1x4x8x8_k3s2p1_fp32"),
        ("pass", "return torch.relu(x) @ x.T", "torch.rand(8, 16, dtype=torch.bfloat16)",
         "matmul_8x16_16x8_in2_permuted_1_0_bf16"),
        ("self.m = nn.Embedding(100, 8)", "return self.m(x)", "torch.randint(0, 100, (2, 3))",
         "embedding_100x8_on_2x3_fp32"),
        ("pass", "return x.argmax(1)", "torch.rand(4, 5, dtype=torch.float64)",
         "argmax_4x5_d1_fp64"),
        ("self.m = nn.LSTM(10, 20, num_layers=2, batch_first=True)", "return self.m(x)[0]",
         "torch.rand(2, 5, 10)", "lstm_10x20_on_2x5_l2_batch_first_fp32"),
        ("self.m = nn.LSTM(10, 20, bidirectional=True)", "return self.m(x)[0]",
         "torch.rand(2, 5, 10)", "lstm_10x20_on_2x5_bidirectional_fp32"),
        ("pass", "return x.roll((3, -3), (1, 2))", "torch.rand(2, 8, 8)",
         "roll_2x8x8_s3_m3_d1_2_fp32"),
        ("pass", "return F.scaled_dot_product_attention(x, x, x, is_causal=True)",
         "torch.rand(2, 8, 8)", "scaled_dot_product_attention_2x8x8_itself_is_causal_fp32"),
    ],
)  # fmt: skip
def test_a_file_is_called_by_operation_dimensions_and_dtype(
    apart: Apart, init: str, forward: str, inputs: str, name: str
) -> None:
    assert name in names(apart, init, forward, inputs)


def test_equal_kernels_with_other_weights_share_a_file(apart: Apart) -> None:
    init = "self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)"
    found = names(apart, init, "return self.b(torch.relu(self.a(x)))", "torch.rand(2, 4)")
    assert found == ["linear_4x4_on_2_fp32", "relu_2x4_fp32", "linear_4x4_on_2_fp32"]


def test_the_input_tells_apart_what_the_parameters_do_not(apart: Apart) -> None:
    init = "self.m = nn.Conv2d(3, 3, 3)"
    found = names(apart, init, "return self.m(torch.relu(self.m(x)))", "torch.rand(1, 3, 9, 9)")
    assert found[0] == "conv2d_3x3_k3_on_1x9x9_fp32"
    assert found[2] == "conv2d_3x3_k3_on_1x7x7_fp32"


def test_the_stride_of_a_batch_of_one_tells_nothing_apart(apart: Apart) -> None:
    forward = "return x[:, :2].exp().sum() + x.repeat(1, 2, 1)[:, :2].exp().sum()"
    found = names(apart, "pass", forward, "torch.rand(1, 4, 8)")
    assert [name for name in found if name.startswith("exp")] == ["exp_1x2x8_fp32"] * 2


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        (
            "return F.softmax(x, 0) + F.softmax(x, 1)",
            ["softmax_4x4_d0_fp32", "softmax_4x4_d1_fp32"],
        ),
        ("return (x - 0.5).exp() + (x - 2).exp()", ["sub_4x4_by0p5_fp32", "sub_4x4_by2_fp32"]),
        ("return x.exp() + x.T.exp()", ["exp_4x4_fp32", "exp_4x4_permuted_1_0_fp32"]),
        (
            "return F.leaky_relu(x).exp() + F.leaky_relu(x, 0.2)",
            ["leaky_relu_4x4_fp32", "leaky_relu_4x4_negative_slope0p2_fp32"],
        ),
        (
            "return (x + x).exp() * (x + x.exp())",
            ["add_4x4_fp32", "add_4x4_itself_fp32"],
        ),
        (
            "return x[:, :2].exp().sum() + x.repeat(1, 2)[:, :2].exp().sum()",
            ["exp_4x2_strides4_1_fp32", "exp_4x2_strides8_1_fp32"],
        ),
        ("return (x * 1).exp() + (x * 1.0).exp()", ["mul_4x4_by1_fp32", "mul_4x4_by1p0_fp32"]),
    ],
)
def test_a_word_tells_apart_workloads_of_the_same_shapes(
    apart: Apart, forward: str, expected: list[str]
) -> None:
    init = "self.w = nn.Parameter(torch.rand(2, 4))"
    found = names(apart, init, forward, "torch.rand(4, 4)")
    operation = expected[0].partition("_")[0]
    assert sorted(name for name in found if name.startswith(operation)) == sorted(expected)


def test_a_digest_stands_only_where_no_word_can_be_said(apart: Apart) -> None:
    forward = "return x + torch.tensor([1.0, 2.0, 3.0, 4.0]) + torch.tensor([4.0, 3.0, 2.0, 1.0])"
    found = [name for name in names(apart, "pass", forward, "torch.rand(4, 4)") if "add" in name]
    assert len(set(found)) == 2
    assert all(re.fullmatch(r"add_4x4_4_constant_[0-9a-f]{4}_fp32", name) for name in found)


PROGRAMS = [
    ("nn.Linear(8, 8)", "self.m(x)"),
    ("nn.Linear(8, 8, bias=False)", "self.m(x)"),
    ("nn.Linear(8, 8)", "self.m(x[0])"),
    ("nn.Linear(8, 8)", "self.m(x.mT)"),
    ("nn.Conv1d(8, 8, 1)", "self.m(x)"),
    ("nn.Conv1d(8, 8, 1)", "self.m(x[0])"),
    ("nn.Conv1d(8, 8, 1)", "self.m(x[:, :, :7])"),
    ("nn.LayerNorm(8)", "self.m(x)"),
    ("nn.LayerNorm((8, 8))", "self.m(x)"),
    ("nn.LayerNorm(8, eps=1e-6)", "self.m(x)"),
    ("nn.LayerNorm(8, bias=False)", "self.m(x)"),
    ("nn.LayerNorm(8, elementwise_affine=False)", "self.m(x)"),
    ("nn.BatchNorm1d(8)", "self.m(x)"),
    ("nn.BatchNorm1d(8, affine=False)", "self.m(x)"),
    ("nn.BatchNorm1d(8, track_running_stats=False)", "self.m(x)"),
    ("nn.GroupNorm(2, 8)", "self.m(x)"),
    ("nn.GroupNorm(4, 8)", "self.m(x)"),
    ("nn.LSTM(8, 8)", "self.m(x)[0]"),
    ("nn.LSTM(8, 8)", "self.m(x)[1][0]"),
    ("nn.LSTM(8, 8)", "self.m(x, (x[:1], x[:1]))[0]"),
    ("nn.LSTM(8, 8, proj_size=4)", "self.m(x)[0]"),
    ("nn.LSTM(8, 8, batch_first=True)", "self.m(x)[0]"),
    ("nn.GRU(8, 8, bias=False)", "self.m(x)[0]"),
    ("nn.Identity()", "x.max(1)[0]"),
    ("nn.Identity()", "x.max(1)[1]"),
    ("nn.Identity()", "x.max()"),
    ("nn.Identity()", "x.sum(1)"),
    ("nn.Identity()", "x.sum(1, keepdim=True)"),
    ("nn.Identity()", "torch.cat((x, x), 1)"),
    ("nn.Identity()", "torch.cat((x, x.relu()), 1)"),
    ("nn.Identity()", "F.avg_pool1d(x, 2, padding=1, count_include_pad=False)"),
    ("nn.Identity()", "F.avg_pool1d(x, 2, padding=1)"),
    ("nn.Identity()", "x * 2"),
    ("nn.Identity()", "x * x"),
    ("nn.Identity()", "2 - x"),
    ("nn.Identity()", "x - 2"),
    ("nn.Identity()", "x.double()"),
    ("nn.Identity()", "torch.einsum('bij,bjk->bik', x, x.relu())"),
    ("nn.Identity()", "torch.einsum('bij,bkj->bik', x, x.relu())"),
    ("nn.Identity()", "F.gelu(x)"),
    ("nn.Identity()", "F.gelu(x, approximate='tanh')"),
]


def test_a_kernels_name_means_one_workload_in_every_model(apart: Apart) -> None:
    meanings: dict[str, set[str]] = {}
    names_of: dict[str, set[str]] = {}
    for init, forward in PROGRAMS:
        text = MODEL.format(
            init=f"self.m = {init}", forward=f"return {forward}", inputs="torch.rand(2, 8, 8)"
        )
        program, root = apart(text)
        known = workloads(program, root)
        for kernel in root.kernels():
            name, meaning = known[id(kernel)].name, digest(program, kernel)
            meanings.setdefault(name, set()).add(meaning)
            names_of.setdefault(meaning, set()).add(name)
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}
    assert [found for found in names_of.values() if len(found) > 1] == []
    assert len(names_of) >= len(PROGRAMS)


def test_over_all_samples_a_kernels_file_name_means_one_workload(decomposed_samples: Path) -> None:
    meanings: dict[str, set[str | None]] = {}
    for file in decomposed_samples.glob("*/*/decomposition_tree.json"):
        for node in Tree.read(file.parent).nodes.values():
            if node.level == "kernel":
                meanings.setdefault(node.path, set()).add(node.identity)
    assert {path for path, found in meanings.items() if len(found) > 1} == set()
    assert len(meanings) > 400


def test_stacked_experts_and_windows_are_in_the_names_of_gpt_oss() -> None:
    sample = Path(__file__).parents[2] / "data/samples/level3/gpt_oss_gathered.py"
    graph = normalize(capture(read_problem(sample)))
    program = Program(graph, recognize(graph))
    root = partition(program, "level3", "gpt_oss_gathered")
    found = {without_digest(known.name) for known in workloads(program, root).values()}
    assert found >= {
        "expert_linear_8x256x128_on_48x2_48x128_to_48x2x256_bf16",
        "expert_linear_8x128x128_on_48x2_48x2x128_bf16",
        "attention_48x2x4x32_causal_sinks_bf16",
        "attention_48x2x4x32_causal_window16_sinks_bf16",
    }


LINES = [
    "self.m(x) + x",
    "self.m(x) + y",
    "x + self.m(x)",
    "y + self.m(x)",
    "self.m(x) + self.m(x)",
    "self.m(x).relu() + y",
    "(self.m(x) + y).relu()",
    "(self.m(x) + y.mT).relu()",
    "self.m(x.relu()).relu()",
    "self.m(x).softmax(0).softmax(1)",
    "self.m(x).softmax(1).softmax(0)",
    "self.m(x).softmax(1) + self.m(y).softmax(1)",
    "torch.add(self.m(x), y, alpha=2)",
]


def test_a_fusions_name_means_one_workload_in_every_model(apart: Apart) -> None:
    meanings: dict[str, set[str]] = {}
    for forward in LINES:
        text = MODEL.format(
            init="self.m = nn.Linear(8, 8)",
            forward=f"return {forward}",
            inputs="torch.rand(8, 8), torch.rand(8, 8)",
        ).replace("forward(self, x)", "forward(self, x, y)")
        program, root = apart(text, "level2")
        for part in root.walk():
            name = workloads(program, root)[id(part)].name
            meanings.setdefault(name, set()).add(digest(program, part))
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}


def test_a_line_of_kernels_is_told_in_words_also_where_its_author_named_it(apart: Apart) -> None:
    program, root = apart(
        """
        class Shortcut(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.norm = nn.Conv2d(4, 8, 1, bias=False), nn.BatchNorm2d(8)

            def forward(self, x):
                return self.norm(self.conv(x))

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.shortcut, self.conv = Shortcut(), nn.Conv2d(4, 8, 1)

            def forward(self, x):
                return self.shortcut(x) + self.conv(x).relu()

        def get_inputs(): return [torch.rand(2, 4, 6, 6)]
        def get_init_inputs(): return []
        """
    )
    found = {known.name for known in workloads(program, root).values()}
    assert "shortcut_4x8_k1_on_2x6x6_nobias_as_conv2d_bn_fp32" in found


def test_sinks_are_a_word_where_only_they_differ(apart: Apart) -> None:
    forward = (
        "a, s = x @ x.mT, self.sink.expand(2, 4, 1)\n"
        "        y = torch.cat((x @ x.mT, s), -1).softmax(-1)[..., :-1] @ x\n"
        "        return a.softmax(-1) @ x + y"
    )
    init = "self.sink = nn.Parameter(torch.zeros(1))"
    found = names(apart, init, forward, "torch.rand(2, 4, 4)")
    attentions = sorted(without_digest(name) for name in found if "attention" in name)
    assert attentions == [
        "scaled_dot_product_attention_2x4x4_fp32",
        "scaled_dot_product_attention_2x4x4_sinks_fp32",
    ]


def test_no_name_with_a_digest_is_longer_than_sixty_characters(apart: Apart) -> None:
    init = "self.conv = nn.ConvTranspose3d(300, 300, 3, stride=2, padding=1, groups=300)"
    forward = "return F.adaptive_avg_pool3d(torch.relu(self.conv(x)), 1)"
    program, root = apart(
        MODEL.format(init=init, forward=forward, inputs="torch.rand(1, 300, 3, 3, 3)"), "level2"
    )
    known = workloads(program, root)
    assert all(len(known[id(part)].name) <= 60 for part in root.walk())
    assert known[id(root)].name.startswith("conv_transpose3d_relu_")


def test_words_that_would_make_a_name_too_long_give_way_to_a_hash(apart: Apart) -> None:
    program, root = apart(
        """
        class Block(nn.Module):
            def __init__(self, padded, eps):
                super().__init__()
                self.padded, self.eps = padded, eps
                self.conv = nn.Conv3d(16, 16, 3, padding=1)

            def forward(self, x):
                y = F.avg_pool3d(x, 3, stride=1, padding=1, count_include_pad=self.padded)
                return x + F.leaky_relu(self.conv(F.layer_norm(y, (8, 8, 8), eps=self.eps)))

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                kinds = [(p, e) for p in (True, False) for e in (0.00123456789, 0.00223456789)]
                self.blocks = nn.ModuleList(Block(*kind) for kind in kinds)

            def forward(self, x):
                for block in self.blocks:
                    x = block(x)
                return x

        def get_inputs(): return [torch.rand(100, 16, 8, 8, 8)]
        def get_init_inputs(): return []
        """
    )
    found = {known.name for known in workloads(program, root).values()}
    blocks = [name for name in found if name.startswith("block_")]
    assert len(blocks) == 4
    assert all(len(name) <= 60 for name in found)


@given(st.text(max_size=30))
def test_any_text_becomes_an_identifier(text: str) -> None:
    assert identifier(text).isidentifier()
    assert camel_case(text).isidentifier()


@given(st.lists(st.sampled_from(["x", "x_2", "y"]), max_size=12))
def test_unique_names_are_unique(wishes: list[str]) -> None:
    taken: set[str] = set()
    for wish in wishes:
        name = make_unique(wish, taken)
        assert name not in taken
        taken.add(name)


def test_equal_blocks_are_one_file_whatever_their_place_in_a_container(apart: Apart) -> None:
    program, root = apart(
        """
        def down(n, m):
            return nn.Sequential(nn.Conv2d(n, m, 3, padding=1), nn.ReLU(), nn.Conv2d(m, m, 1))

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.stem = down(3, 4)
                self.features = nn.Sequential(down(4, 4), down(4, 4), down(4, 6), down(6, 6))

            def forward(self, x):
                return self.features(self.stem(x)).mean()

        def get_inputs(): return [torch.rand(1, 3, 8, 8)]
        def get_init_inputs(): return []
        """
    )
    known = workloads(program, root)
    assert [without_digest(known[id(c)].name) for c in root.children] == [
        "stem_1x3x8x8_to_1x4x8x8_fp32",
        "features_block_1x4x8x8_fp32",
        "features_block_1x4x8x8_fp32",
        "features_block_1x4x8x8_to_1x6x8x8_fp32",
        "features_block_1x6x8x8_fp32",
        "mean_1x6x8x8_fp32",
    ]


TABLED = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, cosines, x):
        return x + self.down(torch.relu(self.up(x)) * cosines)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        table = torch.outer(torch.arange(4.0), torch.arange(8.0))
        for block in self.blocks:
            x = block(table.cos(), x)
        return x.mean(1)

def get_inputs(): return [torch.rand(2, 4, 8)]
def get_init_inputs(): return []
"""


def test_a_block_is_called_by_what_it_works_on_and_not_by_a_table(apart: Apart) -> None:
    program, root = apart(TABLED)
    known = workloads(program, root)
    blocks = [part for part in root.children if part.level == "layer"]
    assert {program.spec(block.io.inputs[0]).shape for block in blocks} == {(4, 8)}
    assert {without_digest(known[id(block)].name) for block in blocks} == {"block_2x4x8_fp32"}
