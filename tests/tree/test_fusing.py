"""Which kernels are a fusion: calls of modules, blocks up to a residual add, straight lines."""

import pytest
from outlines import Apart, drawn, outline

from runner.tree.part import Part
from runner.tree.part_names import container_stem

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


def test_a_line_goes_on_through_the_residual_add_that_it_ends_in(apart: Apart) -> None:
    _, root = apart(RESIDUAL)
    assert outline(root) == (
        "layer",
        ("fusion", "conv2d", "relu"),
        ("fusion", "conv2d", "mul", "add", "relu"),
    )


def test_of_two_branches_the_longer_one_goes_on_through_the_add(apart: Apart) -> None:
    _, root = apart(
        RESIDUAL.replace("out + x", "self.shortcut(x) + out").replace(
            "super().__init__()", "super().__init__()\n        self.shortcut = nn.Conv2d(4, 4, 1)"
        )
    )
    assert outline(root) == (
        "layer",
        ("fusion", "conv2d", "relu"),
        "conv2d",
        ("fusion", "conv2d", "mul", "add", "relu"),
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


ATTENTION = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return self.out(F.scaled_dot_product_attention(q, k, v))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.attention = Attention()
        self.gate, self.up, self.down = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        {forward}

def get_inputs(): return [torch.rand(2, 5, 8)]
def get_init_inputs(): return []
"""


MLP = "self.down(F.silu(self.gate({0})) * self.up({0}))"


def block(apart: Apart, *lines: str) -> Part:
    return apart(ATTENTION.format(forward="\n        ".join(lines)))[1]


def test_a_call_of_a_module_is_a_fusion_named_by_its_class(apart: Apart) -> None:
    root = block(apart, "return torch.relu(self.attention(self.norm1(x)))")
    assert [(c.level, c.stem, c.name) for c in root.children] == [
        ("kernel", "layer_norm", "norm1"),
        ("fusion", "attention", "attention"),
        ("kernel", "relu", "relu"),
    ]
    attention = root.children[1]
    assert [c.stem for c in attention.children] == [
        *("linear", "scaled_dot_product_attention", "linear"),
    ]


@pytest.mark.parametrize(
    ("path", "stem"),
    [("layer1", "layer1"), ("features.7", "features_block"), ("encoder.model", "encoder")],
)
def test_a_block_of_a_container_is_named_after_what_tells_most(path: str, stem: str) -> None:
    assert container_stem(path) == stem


def test_a_stretch_up_to_its_residual_add_is_a_block(apart: Apart) -> None:
    root = block(
        apart,
        "x = x + self.attention(self.norm1(x))",
        "h = self.norm2(x)",
        f"return x + {MLP.format('h')}",
    )
    assert drawn(root).splitlines()[1:] == [
        "  layer_norm",
        "  attention: linear, scaled_dot_product_attention, linear",
        "  add",
        "  mlp_block: layer_norm, linear, linear, swiglu, linear, add",
    ]


def test_a_block_with_a_softmax_between_products_is_an_attention(apart: Apart) -> None:
    root = block(
        apart,
        "a, b = self.gate(x), self.up(x)",
        "w = (torch.einsum('bij,bkj->bik', a, b) + torch.einsum('bij,bkj->bik', b, a)).softmax(-1)",
        "y = torch.einsum('bik,bkj->bij', w, a) + torch.einsum('bik,bkj->bij', w, b)",
        "x = x + self.down(y)",
        f"return x + {MLP.format('self.norm2(x)')}",
    )
    assert [c.stem for c in root.children] == ["attention_block", "mlp_block"]


def test_a_norm_of_the_sum_closes_the_block_before_it(apart: Apart) -> None:
    root = block(
        apart,
        "x = self.norm1(x + self.attention(x))",
        f"return self.norm2(x + {MLP.format('x')})",
    )
    assert drawn(root).splitlines()[1:] == [
        "  attention: linear, scaled_dot_product_attention, linear",
        "  add_layer_norm: add, layer_norm",
        "  mlp_block: linear, linear, swiglu, linear, add, layer_norm",
    ]


def test_what_leads_to_the_next_contraction_from_its_norm_on_goes_with_that(apart: Apart) -> None:
    _, root = apart(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.bn1, self.bn2 = nn.BatchNorm2d(4), nn.BatchNorm2d(4)
                self.conv1 = nn.Conv2d(4, 4, 3, padding=1)
                self.conv2 = nn.Conv2d(4, 4, 3, padding=1)

            def forward(self, x):
                h = self.conv1(torch.relu(self.bn1(x)))
                return x + self.conv2(torch.relu(self.bn2(h)))

        def get_inputs(): return [torch.rand(2, 4, 8, 8)]
        def get_init_inputs(): return []
        """
    )
    assert outline(root) == (
        "layer",
        ("fusion", "batch_norm", "relu", "conv2d"),
        ("fusion", "batch_norm", "relu", "conv2d", "add"),
    )


STANDARDIZED = """
class Standardized(nn.Conv2d):
    def forward(self, x):
        mean, std = self.weight.mean((1, 2, 3), True), self.weight.std((1, 2, 3), keepdim=True)
        return F.conv2d(x, (self.weight - mean) / (std + 1e-5), self.bias, padding=1)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = Standardized(4, 4, 3), Standardized(4, 4, 3)

    def forward(self, x):
        return torch.relu(self.conv2(torch.relu(self.conv1(x))) + x)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = Standardized(3, 4, 3)
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, x):
        return self.blocks(self.stem(x)).mean((2, 3))

def get_inputs(): return [torch.rand(2, 3, 8, 8)]
def get_init_inputs(): return []
"""


def test_a_convolution_whose_weight_is_made_first_is_a_fusion_at_any_place(apart: Apart) -> None:
    _, root = apart(STANDARDIZED)
    stem, first = root.children[0], root.children[1]
    assert (stem.level, stem.stem) == ("fusion", "standardized")
    assert (first.level, first.stem) == ("layer", "block")
    assert [part.stem for part in first.children].count("standardized") == 2


def test_with_one_residual_add_only_there_are_lines_and_no_blocks(apart: Apart) -> None:
    root = block(apart, "h = self.norm2(x)", f"return x + {MLP.format('h')}")
    assert drawn(root).splitlines()[1:] == [
        *("  layer_norm", "  linear", "  linear_swiglu: linear, swiglu"),
        "  linear_add: linear, add",
    ]


def test_a_fusion_says_which_of_its_kernels_are_straight_lines(apart: Apart) -> None:
    root = block(
        apart,
        "x = x + self.attention(self.norm1(x))",
        "h = self.norm2(x)",
        f"return x + {MLP.format('h')}",
    )
    mlp = root.children[3]
    lines = [[mlp.children[n].stem for n in group] for group in mlp.groups]
    assert lines == [["linear", "swiglu"], ["linear", "add"]]


def test_a_call_of_many_kernels_is_replaced_by_its_own_calls(apart: Apart) -> None:
    _, root = apart(
        """
        class Expert(nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

            def forward(self, x):
                return self.down(torch.tanh(torch.relu(self.up(x)) + 1))


        class Experts(nn.Module):
            def __init__(self):
                super().__init__()
                self.experts = nn.ModuleList(Expert() for _ in range(4))

            def forward(self, x):
                return torch.stack([expert(x) for expert in self.experts]).sum(0)


        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.moe = nn.LayerNorm(8), Experts()

            def forward(self, x):
                return self.norm(x) + self.moe(x)

        def get_inputs(): return [torch.rand(2, 5, 8)]
        def get_init_inputs(): return []
        """,
        "custom",
    )
    layer = next(part for part in root.walk() if part.stem == "experts")
    assert [child.stem for child in layer.children][:4] == ["expert"] * 4
    assert {len(child.children) for child in layer.children[:4]} == {5}


def test_what_depends_on_no_input_is_a_fusion_of_its_own(apart: Apart) -> None:
    _, root = apart(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 5)
                self.mix = nn.Linear(5, 5)
                self.grid = nn.Parameter(torch.rand(5, 3))

            def forward(self, x):
                position_bias = self.b(torch.relu(self.a(self.grid)))
                return self.mix(x) + position_bias

        def get_inputs(): return [torch.rand(2, 5, 5)]
        def get_init_inputs(): return []
        """
    )
    assert drawn(root).splitlines()[1:] == [
        "  position_bias: linear, relu, linear",
        "  linear_add: linear, add",
    ]


def test_a_long_line_is_called_after_what_tells_most_about_it(apart: Apart) -> None:
    _, root = apart(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.mix = nn.LayerNorm(4), nn.Linear(4, 4)

            def forward(self, x):
                h = F.pad(self.mix(self.norm(x)).tanh().sigmoid() * 2, (0, 0, 1, 1))
                return h.exp().cumsum(1), x.exp()

        def get_inputs(): return [torch.rand(2, 6, 4)]
        def get_init_inputs(): return []
        """
    )
    line = next(part for part in root.children if part.level == "fusion")
    assert [kernel.stem for kernel in line.children] == [
        *("layer_norm", "linear", "tanh", "sigmoid", "mul", "pad", "exp", "cumsum"),
    ]
    assert line.stem == "layer_norm_linear_cumsum"


SHORTCUT = """
def conv():
    return nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU())


class Block(nn.Module):
    def __init__(self, shortcut):
        super().__init__()
        self.shortcut = conv() if shortcut else nn.Identity()
        self.layer = nn.Sequential(conv(), conv(), conv())

    def forward(self, x):
        return torch.tanh(self.layer(x) + self.shortcut(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(True), Block(False), Block(False))

    def forward(self, x):
        return self.blocks(x).mean((2, 3))

def get_inputs(): return [torch.rand(2, 4, 8, 8)]
def get_init_inputs(): return []
"""


def test_a_container_that_is_most_of_its_block_is_its_body_beside_a_shortcut_too(
    apart: Apart,
) -> None:
    _, root = apart(SHORTCUT)
    inside = [[child.stem for child in block.children] for block in root.children[:3]]
    plain = ["conv2d_relu", "conv2d_relu", "conv2d_relu", "add_tanh"]
    assert inside[1:] == [plain, plain]
    assert sorted(inside[0]) == sorted(["shortcut", *plain])


SUMS = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.rand(4, 8, 8))

    def forward(self, x, gates):
        out = x
        for i in range(4):
            out = out + gates[:, i : i + 1] * (x @ self.weights[i])
        return out.sum()

def get_inputs(): return [torch.rand(6, 8), torch.rand(6, 4)]
def get_init_inputs(): return []
"""


def test_each_term_of_a_running_sum_ends_in_its_own_add(apart: Apart) -> None:
    _, root = apart(SUMS)
    terms = [part.stem for part in root.children]
    assert terms == ["matmul_mul_add"] * 3 + ["matmul_mul_add_sum"]


TOTALS = """
def loss_of(logits, target):
    lse = torch.logsumexp(logits, -1)
    picked = logits.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    return (lse - picked + 0.1 * lse.pow(2)).sum(), lse.pow(2).sum()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 16)

    def forward(self, x, target):
        total, squares = x.new_zeros(()), x.new_zeros(())
        for part, goal in zip(x.chunk(4), target.chunk(4)):
            loss, square = loss_of(self.head(part), goal)
            total, squares = total + loss, squares + square
        return total, squares

def get_inputs(): return [torch.rand(12, 8), torch.randint(0, 16, (12,))]
def get_init_inputs(): return []
"""


def test_a_total_is_no_residual_since_its_new_term_does_not_read_it(apart: Apart) -> None:
    _, root = apart(TOTALS)
    turns = [[part.stem for part in turn.children] for turn in root.children]
    assert turns == [["linear", "loss_of", "add", "add"]] * 4


MEMORY = """
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.k, self.v, self.gate = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, first):
        k, v = self.k(x), self.v(x)
        v = v + (first - v) * torch.sigmoid(self.gate(x))
        state = k[:, :2].transpose(1, 2) @ v[:, :2]
        state = state + k[:, 2:4].transpose(1, 2) @ (v[:, 2:4] - k[:, 2:4] @ state)
        state = state + k[:, 4:].transpose(1, 2) @ (v[:, 4:] - k[:, 4:] @ state)
        return x @ state

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Memory() for _ in range(3)])

    def forward(self, x):
        first = x
        for layer in self.layers:
            x = layer(x, first)
        return x

def get_inputs():
    return [torch.randn(2, 6, 8)]

def get_init_inputs():
    return []
"""


def test_a_mix_of_two_values_and_a_state_are_no_residual_adds(apart: Apart) -> None:
    _, root = apart(MEMORY)
    assert [child.stem for child in root.children[1].children] == [
        "linear", "linear", "linear_sigmoid", "sub_mul_add", "matmul",
        *("matmul_sub", "matmul_add") * 2, "matmul",
    ]  # fmt: skip


def test_what_a_weight_computes_from_a_value_is_a_residual_branch(apart: Apart) -> None:
    mix = "v = v + (first - v) * torch.sigmoid(self.gate(x))"
    step = "x = x + (self.gate(x.relu()) - x) * 0.5"
    _, root = apart(MEMORY.replace(mix, f"{step}; {step}"))
    reasons = [child.reason for child in root.children[1].children]
    assert (
        sum(reason.startswith("all that leads up to the residual add") for reason in reasons) == 2
    )


MLP_IN_A_CONVOLUTION = """
class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(width, 8), nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        return self.norm(self.second(F.gelu(self.first(x))))

class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = Mlp(24)

    def forward(self, x, edges, ends):
        edges = self.mlp(torch.cat([x[ends[0]], x[ends[1]], edges], dim=-1)) + edges
        return torch.zeros_like(x).index_add(0, ends[1], edges)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.edges, self.convolution, self.nodes = Mlp(4), Convolution(), Mlp(16)

    def forward(self, x, edges, ends):
        summed = self.convolution(x, self.edges(edges), ends)
        return x + self.nodes(torch.cat([x, summed], dim=-1))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x, edges, ends):
        for block in self.blocks:
            x = block(x, edges, ends)
        return x

def get_inputs(): return [torch.randn(5, 8), torch.randn(9, 4), torch.randint(0, 5, (2, 9))]
def get_init_inputs(): return []
"""


def test_a_class_that_a_layer_and_a_call_in_it_call_is_a_fusion_in_both(apart: Apart) -> None:
    _, root = apart(MLP_IN_A_CONVOLUTION)
    block = next(part for part in root.children if part.level == "layer")
    assert [part.stem for part in block.children if part.level == "fusion"] == ["mlp"] * 3
