"""How a model comes apart into layers, fusions and kernels."""

from collections import Counter
from pathlib import Path

import pytest
from outlines import Apart, outline

from runner.graph.capture import capture
from runner.graph.normalize import normalize
from runner.graph.recognize import recognize
from runner.problems import read_problem
from runner.tree.document import LEVEL_NUMBER
from runner.tree.interface import Program
from runner.tree.part import Part
from runner.tree.partition import partition

SAMPLES = Path(__file__).parents[2] / "data" / "samples"

CHAIN = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.bn = nn.BatchNorm2d(4)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))

def get_inputs(): return [torch.rand(2, 3, 8, 8)]
def get_init_inputs(): return []
"""


def test_a_level1_problem_is_one_kernel_whatever_it_computes(apart: Apart) -> None:
    program, root = apart(CHAIN, "level1", "7_OddlyFused")
    assert (root.level, root.stem, root.children) == ("kernel", "oddly_fused", ())
    assert root.operations == tuple(range(len(program.graph.operations)))


def test_a_level2_problem_is_one_fusion_of_its_kernels(apart: Apart) -> None:
    _, root = apart(CHAIN, "level2")
    assert outline(root) == ("fusion", "conv2d", "batch_norm", "relu")
    assert root.stem == "conv2d_batch_norm_relu"


def test_a_problem_of_one_kernel_is_that_kernel_at_any_level(apart: Apart) -> None:
    _, root = apart(
        """
        class Model(nn.Module):
            def forward(self, x):
                return torch.relu(x)

        def get_inputs(): return [torch.rand(2, 3)]
        def get_init_inputs(): return []
        """
    )
    assert outline(root) == "relu"


def test_a_custom_problem_is_what_its_structure_says(apart: Apart) -> None:
    _, root = apart(CHAIN, "custom")
    assert outline(root) == ("fusion", "conv2d", "batch_norm", "relu")


RESIDUAL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        out = torch.relu(self.conv1(x))
        out = self.conv2(out) * 0.5
        out = out + x
        return torch.relu(out)

def get_inputs(): return [torch.rand(2, 4, 8, 8)]
def get_init_inputs(): return []
"""


def test_a_residual_add_ends_the_fusion(apart: Apart) -> None:
    _, root = apart(RESIDUAL)
    assert outline(root) == (
        "layer",
        ("fusion", "conv2d", "relu"),
        ("fusion", "conv2d", "mul"),
        ("fusion", "add", "relu"),
    )


def test_a_value_that_two_read_ends_the_fusion(apart: Apart) -> None:
    _, root = apart(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(8, 8)

            def forward(self, x):
                x = torch.relu(self.fc(x))
                return torch.tanh(x), torch.sigmoid(x)

        def get_inputs(): return [torch.rand(2, 8)]
        def get_init_inputs(): return []
        """
    )
    assert outline(root) == ("model", ("fusion", "linear", "relu"), "tanh", "sigmoid")


def test_views_between_the_kernels_of_a_fusion_are_the_fusions_own(apart: Apart) -> None:
    program, root = apart(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(8, 12)
                self.out = nn.Linear(3, 5)

            def forward(self, x):
                x = self.fc(x).view(2, 4, 3).transpose(0, 1)
                return self.out(torch.relu(x).sum(0))

        def get_inputs(): return [torch.rand(2, 8)]
        def get_init_inputs(): return []
        """
    )
    first = root.children[0]
    names = [program.graph.operations[i].name for i in first.operations]
    assert names == ["linear", "view", "transpose", "relu", "sum"]
    assert [program.graph.operations[i].name for c in first.children for i in c.operations] == [
        "linear",
        "relu",
        "sum",
    ]


STACK = """
class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.up = nn.Linear(n, 2 * n)
        self.down = nn.Linear(2 * n, n)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Block(8) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.encoder = Encoder()
        self.head = nn.Linear(8, 10)

    def forward(self, ids):
        return torch.softmax(self.head(self.encoder(self.embed(ids))), dim=-1)

def get_inputs(): return [torch.randint(0, 10, (2, 5))]
def get_init_inputs(): return []
"""


def test_repeated_blocks_are_layers_and_the_module_around_them_is_only_a_frame(
    apart: Apart,
) -> None:
    _, root = apart(STACK)
    block = ("layer", ("fusion", "linear", "relu"), "linear", "add")
    assert outline(root) == (
        "model",
        "embedding",
        block,
        block,
        block,
        ("fusion", "linear", "softmax"),
    )
    assert [c.name for c in root.children[1:4]] == ["layers_0", "layers_1", "layers_2"]
    assert root.children[1].stem == "block"


def test_parallel_experts_are_no_stack_so_their_block_stays_one_layer(apart: Apart) -> None:
    _, root = apart(
        """
        class Expert(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.up = nn.Linear(n, n)
                self.down = nn.Linear(n, n)

            def forward(self, x):
                return self.down(torch.relu(self.up(x)))


        class Block(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.experts = nn.ModuleList(Expert(n) for _ in range(3))

            def forward(self, x):
                return x + sum(expert(x) for expert in self.experts)


        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.Sequential(Block(4), Block(4))

            def forward(self, x):
                return self.blocks(x).mean()

        def get_inputs(): return [torch.rand(2, 4)]
        def get_init_inputs(): return []
        """
    )
    assert [(c.level, c.stem) for c in root.children] == [
        ("layer", "block"),
        ("layer", "block"),
        ("kernel", "mean"),
    ]


def test_a_gated_mlp_is_one_fusion_of_three_projections(apart: Apart) -> None:
    _, root = apart(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.LayerNorm(8)
                self.gate, self.up = nn.Linear(8, 16), nn.Linear(8, 16)
                self.down = nn.Linear(16, 8)

            def forward(self, x):
                h = self.norm(x)
                return x + self.down(F.silu(self.gate(h)) * self.up(h))

        def get_inputs(): return [torch.rand(2, 5, 8)]
        def get_init_inputs(): return []
        """
    )
    assert [c.stem for c in root.children] == ["layer_norm", "gated_mlp", "add"]
    assert [c.stem for c in root.children[1].children] == [
        *("linear", "linear", "swiglu", "linear"),
    ]


def test_a_result_that_nobody_reads_is_still_a_kernel(apart: Apart) -> None:
    _, root = apart(
        """
        class Model(nn.Module):
            def forward(self, x):
                torch.exp(x)
                return torch.tanh(x)

        def get_inputs(): return [torch.rand(2, 8)]
        def get_init_inputs(): return []
        """
    )
    exp = root.children[0]
    assert exp.stem == "exp"
    assert len(exp.io.outputs) == 1


def test_gpt_oss_comes_apart_as_its_readers_expect() -> None:
    _, root = _sample(SAMPLES / "level3" / "gpt_oss.py")
    assert [(c.level, c.name) for c in root.children] == [
        ("kernel", "embedding"),
        ("layer", "layers_0"),
        ("layer", "layers_1"),
        ("layer", "layers_2"),
        ("layer", "layers_3"),
        ("fusion", "output_head"),
    ]
    layer = root.children[1]
    modules = {part.module_path for part in layer.children}
    assert any(m.startswith("layers.0.attn") for m in modules)
    assert any(m.startswith("layers.0.moe") for m in modules)
    kernels = Counter(k.stem for k in layer.kernels())
    assert kernels["rms_norm"] == 2
    assert kernels["rope"] == 1
    assert kernels["scaled_dot_product_attention"] == 1
    assert kernels["topk_router"] == 1
    assert kernels["expert_linear"] == 2
    assert kernels["swiglu"] == 1
    assert kernels["add"] == 2
    assert kernels["expert_combine"] == 1
    assert {k.name for k in layer.kernels()} >= {"qkv", "out", "router", "gate_up", "down"}


def _sample(path: Path) -> tuple[Program, Part]:
    problem = read_problem(path)
    graph = normalize(capture(problem))
    program = Program(graph, recognize(graph))
    return program, partition(program, problem.source_level, problem.name)


@pytest.mark.parametrize(
    "path",
    sorted(SAMPLES.glob("level[23]/*.py")),
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_the_rules_of_a_decomposition_hold_for_every_sample(path: Path) -> None:
    program, root = _sample(path)
    for part in root.walk():
        assert all(LEVEL_NUMBER[c.level] < LEVEL_NUMBER[part.level] for c in part.children)
        assert len(part.children) != 1, f"{part.name} has a single child"
        inside = [i for c in part.children for i in c.operations]
        outside = set(part.operations) - set(inside)
        if part.children:
            assert all(program.graph.operations[i].view for i in outside)
        else:
            assert part.level == "kernel"
    times = Counter(i for kernel in root.kernels() for i in kernel.operations)
    for i, op in enumerate(program.graph.operations):
        assert times[i] == 1 or op.view, f"{op.target} is in {times[i]} kernels"


def test_a_long_fusion_is_called_after_what_tells_most_about_it(apart: Apart) -> None:
    _, root = apart(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.LayerNorm(4)
                self.mix = nn.Linear(8, 8)

            def forward(self, x):
                h = F.pad(self.norm(x), (0, 0, 1, 1)).transpose(1, 2).contiguous()
                h = self.mix(h).transpose(1, 2).contiguous()
                return torch.relu(F.pad(h, (0, 0, -1, -1)).sigmoid() * 2) + x

        def get_inputs(): return [torch.rand(2, 6, 4)]
        def get_init_inputs(): return []
        """
    )
    assert [(c.level, c.stem) for c in root.children] == [
        ("fusion", "layer_norm_linear"),
        ("kernel", "add"),
    ]
