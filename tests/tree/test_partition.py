"""How a model comes apart into layers, fusions and kernels."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from outlines import Apart, drawn, outline

from runner.graph.normalize import normalize
from runner.graph.recognition.recognize import recognize
from runner.graph.tracing.capture import capture
from runner.problems import read_problem
from runner.tree.document import LEVEL_NUMBER
from runner.tree.interface import Program, interface
from runner.tree.part import Part, order_parts
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
    block = ("layer", ("fusion", "linear", "relu"), ("fusion", "linear", "add"))
    assert outline(root) == (
        "model",
        "embedding",
        block,
        block,
        block,
        ("fusion", "linear", "softmax"),
    )
    assert root.children[-1].stem == "output_head"
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


def test_an_output_head_may_begin_in_the_frame_around_the_layers(apart: Apart) -> None:
    frame = STACK.replace(
        "x = layer(x)\n        return x", "x = layer(x)\n        return self.norm(x)"
    )
    frame = frame.replace(
        "class Encoder(nn.Module):\n    def __init__(self):\n        super().__init__()",
        "class Encoder(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.norm = nn.LayerNorm(8)",
    )
    _, root = apart(frame)
    assert drawn(root).splitlines()[-1] == "  output_head: layer_norm, linear, softmax"


def test_of_parts_that_wait_for_each_other_one_gives_way_to_what_it_holds(apart: Apart) -> None:
    program, root = apart(CHAIN)
    conv, norm, relu = root.children
    inside = (*conv.operations, *relu.operations)
    around = replace(root, name="around", children=(conv, relu), operations=inside,
                     io=interface(program, inside))  # fmt: skip
    parts = order_parts(program, root.operations, [around, norm])
    assert [part.stem for part in parts] == [conv.stem, norm.stem, relu.stem]
    assert parts[0].reason.endswith("not in around, which would wait for a part that waits for it")


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


ATTENTION_BLOCK = "rms_norm, linear, rope, scaled_dot_product_attention, linear, add"
MOE_BLOCK = (
    "rms_norm, linear, topk_router, expert_linear, swiglu, expert_linear, expert_combine, add"
)


@pytest.mark.parametrize("sample", ["gpt_oss", "gpt_oss_gathered"])
def test_gpt_oss_comes_apart_as_its_readers_expect(sample: str) -> None:
    _, root = _sample(SAMPLES / "level3" / f"{sample}.py")
    assert drawn(root).splitlines() == [
        f"{sample} (model)",
        "  embedding",
        "  4 x transformer_block (layer)",
        f"    attention_block: {ATTENTION_BLOCK}",
        f"    moe_block: {MOE_BLOCK}",
        "  output_head: rms_norm, linear",
    ]


def test_llama_comes_apart_as_its_modules_say() -> None:
    _, root = _sample(SAMPLES / "level3" / "llama.py")
    assert drawn(root).splitlines() == [
        "llama (model)",
        "  embedding",
        "  rope_table",
        "  4 x transformer_block (layer)",
        "    rms_norm",
        "    attention: linear, linear, linear, rope, scaled_dot_product_attention, linear",
        "    add",
        "    rms_norm",
        "    feed_forward: linear, linear, swiglu, linear",
        "    add",
        "  output_head: rms_norm, linear",
    ]


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
