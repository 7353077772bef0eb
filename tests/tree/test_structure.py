"""Layers follow the author's module tree and the loops of a forward, not the spelling of names."""

import pytest
from outlines import Apart, drawn, outline

from runner.tree.part import Part

ENDS = """
def get_inputs(): return [torch.randn(2, 8, 16, 16)]
def get_init_inputs(): return []
"""

RESNET_BLOCK = """
class ResnetBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(2, i), nn.Conv2d(i, o, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(2, o), nn.Conv2d(o, o, 3, padding=1)
        self.skip = nn.Conv2d(i, o, 1)

    def forward(self, x):
        h = self.conv1(F.silu(self.norm1(x)))
        return self.conv2(F.silu(self.norm2(h))) + self.skip(x)
"""

STAGES = (
    RESNET_BLOCK
    + """
class Down(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.{first}, self.{second} = ResnetBlock(i, o), ResnetBlock(o, o)
        self.pool = nn.Conv2d(o, o, 3, 2, 1)

    def forward(self, x):
        return self.pool(self.{second}(self.{first}(x)))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.down3 = Down(8, 8), Down(8, 16), Down(16, 16)

    def forward(self, x):
        return self.down3(self.down2(self.down1(x)))
"""
    + ENDS
)

SEQUENCES = (
    RESNET_BLOCK
    + """
class EncoderBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.layers = nn.Sequential(ResnetBlock(i, o), ResnetBlock(o, o), nn.Conv2d(o, o, 3, 2, 1))

    def forward(self, x):
        return self.layers(x)

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.block1, self.block2 = EncoderBlock(8, 8), EncoderBlock(8, 16)
        self.out = nn.Conv2d(16, 4, 1)

    def forward(self, x):
        return self.out(self.block2(self.block1(x)))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.encoder(x).mean((2, 3)))
"""
    + ENDS
)

DICTIONARIES = (
    RESNET_BLOCK
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(8, 8, 1)
        self.up = nn.ModuleList(
            nn.ModuleDict({
                "up": nn.ConvTranspose2d(8, 8, 2, 2),
                "first": ResnetBlock(16, 8),
                "second": ResnetBlock(8, 8),
            })
            for _ in range(2)
        )

    def forward(self, x):
        x = self.stem(x)
        skips = [F.avg_pool2d(x, 1), F.interpolate(x, scale_factor=2.0)]
        x = F.avg_pool2d(x, 2)
        for level, skip in zip(self.up, skips):
            x = torch.cat([level["up"](x), skip], 1)
            x = level["second"](level["first"](x))
        return x
"""
    + ENDS
)

RECURSIVE = (
    """
class Level(nn.Module):
    def __init__(self, inside):
        super().__init__()
        after = 16 if inside else 8
        held = [inside] if inside else []
        self.model = nn.Sequential(
            nn.LeakyReLU(0.2), nn.Conv2d(8, 8, 4, 2, 1), *held,
            nn.ReLU(), nn.ConvTranspose2d(after, 8, 4, 2, 1),
        )

    def forward(self, x):
        return torch.cat([x, self.model(x)], 1)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.levels, self.head = Level(Level(Level(None))), nn.Conv2d(16, 3, 1)

    def forward(self, x):
        return self.head(self.levels(x))
"""
    + ENDS
)

LOOP = """
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.recurrent = nn.Parameter(torch.randn(8, 16))

    def forward(self, x):
        h, c, found = torch.tanh(x[:, 0, :8]), torch.exp(x[:, 0, :8]), []
        for t in range(5):
            gate, value = (x[:, t] + h @ self.recurrent).chunk(2, -1)
            c = torch.sigmoid(gate) * c + torch.tanh(value)
            h = c / (1 + c.abs())
            found.append(h)
        return torch.stack(found, 1)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.into, self.cell = nn.LayerNorm(8), nn.Linear(8, 16), Cell()

    def forward(self, x):
        return x + self.cell(self.into(self.norm(x)))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.mean(1)

def get_inputs(): return [torch.randn(2, 5, 8)]
def get_init_inputs(): return []
"""

FRAMES = (
    """
class Down(nn.Module):
    def __init__(self):
        super().__init__()
        conv = lambda: nn.utils.parametrizations.spectral_norm(nn.Conv2d(8, 8, 3, padding=1))
        self.short, self.first, self.last = conv(), conv(), conv()

    def forward(self, x):
        short = F.avg_pool2d(self.short(x), 2)
        return short + F.avg_pool2d(self.last(F.relu(self.first(F.relu(x)))), 2)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Down(), Down()

    def forward(self, x):
        return torch.stack([self.b(self.a(each)) for each in (x, x * 2, x.flip(0))])
"""
    + ENDS
)

NORMS = (
    """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.conv = nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, padding=1)
        self.after, self.head = nn.GroupNorm(2, 8), nn.Conv2d(8, 4, 1)

    def forward(self, x):
        y = self.after(self.conv(self.before(x)))
        return self.head(torch.relu(F.interpolate(y, scale_factor=2.0)))
"""
    + ENDS
)


WINDOWS = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        q, k, out = self.q(x), self.k(x), []
        for i in range(12):
            low = max(0, i - 2)
            s = (q[:, i : i + 1] @ k[:, low : i + 1].transpose(1, 2)).softmax(-1)
            out.append(s @ x[:, low : i + 1])
        return torch.cat(out, 1)

def get_inputs(): return [torch.randn(2, 12, 8)]
def get_init_inputs(): return []
"""


MIXED = (
    """
class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.squeeze, self.excite = nn.Linear(8, 4), nn.Linear(4, 8)

    def forward(self, x):
        gate = self.excite(torch.relu(self.squeeze(x.mean((2, 3))))).sigmoid()
        return x * gate[..., None, None]

class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(x)))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv2d(8, 8, 1), Gate(), Residual(), Residual()) for _ in range(2)
        )

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.mean((2, 3))
"""
    + ENDS
)

HALVES = (
    RESNET_BLOCK
    + """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(8, 8, 1)
        self.blocks = nn.Sequential(*(ResnetBlock(8, 8) for _ in range(3)))

    def forward(self, x):
        return self.blocks(self.stem(x))

class Decoder(Encoder):
    pass

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(), Decoder()

    def forward(self, x):
        return self.decoder(torch.tanh(self.encoder(x)))
"""
    + ENDS
)

FUNCTIONS = (
    """
def balanced(x):
    return (x / x.abs().amax(1, keepdim=True)).cumsum(1).tanh()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        x = balanced(self.first(x.mean((2, 3))))
        return self.last(balanced(torch.relu(x)))
"""
    + ENDS
)

CHECKED = (
    """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 8), nn.Linear(8, 4)

    def forward(self, x):
        assert (x.abs() < 100).all()
        return self.last(torch.relu(self.first(x)))
"""
    + ENDS
)

TRANSFORMER = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        return self.out(F.scaled_dot_product_attention(q, k, v))

def mlp():
    return nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

def shifted(x):
    return torch.cat([F.pad(x[..., :8], (0, 0, 1, -1)), x[..., 8:]], dim=-1)

class Transformer(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleList([Attention(), mlp()]) for _ in range(depth))
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        for attention, mlp in self.layers:
            x = attention(shifted(x)) + x
            x = mlp(shifted(x)) + x
        return self.norm(x)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.between, self.second = Transformer(4), nn.Linear(16, 16), Transformer(2)

    def forward(self, x):
        return self.second(self.between(self.first(x))).mean(1)

def get_inputs(): return [torch.randn(2, 5, 16)]
def get_init_inputs(): return []
"""

TWO_LISTS = """
class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.gate = nn.LayerNorm(16), nn.Linear(16, 16)

    def forward(self, x):
        return x * torch.sigmoid(self.gate(self.norm(x)))

class Mix(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.up, self.down = nn.Linear(16, wide), nn.Linear(wide, 16)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleList([Mix(16 * n), Mix(16)]) for n in (2, 1, 1, 1))
        self.gates = nn.ModuleList(nn.ModuleList([Gate(), Gate()]) for _ in range(4))

    def forward(self, x):
        for (first, second), (before, after) in zip(self.layers, self.gates):
            x = first(torch.relu(x)) + x
            x = after(second(before(x))).roll(1, dims=1)
        return x.mean(1)

def get_inputs(): return [torch.randn(2, 5, 16)]
def get_init_inputs(): return []
"""

SHARED = (
    RESNET_BLOCK
    + """
class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(ResnetBlock(8, 8) for _ in range(2)), nn.Conv2d(8, 8, 1))
        self.last = ResnetBlock(8, 8)

    def forward(self, x):
        return self.last(self.blocks(x))

class Estimator(nn.Module):
    def __init__(self):
        super().__init__()
        self.field = Field()

    def forward(self, x):
        return self.field(x / 2) * 2

    def loss(self, x):
        return self.field(x.tanh())

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.estimator = Estimator()

    def forward(self, x):
        return self.estimator(x), self.estimator.loss(x)
"""
    + ENDS
)


def layers(root: Part) -> list[Part]:
    return [child for child in root.children if child.level == "layer"]


@pytest.mark.parametrize("names", [("res1", "res2"), ("a", "b")])
def test_attributes_that_end_in_a_digit_are_no_list(apart: Apart, names: tuple[str, str]) -> None:
    _, root = apart(STAGES.replace("{first}", names[0]).replace("{second}", names[1]))
    assert [part.stem for part in root.children] == ["down"] * 3
    assert [part.stem for part in root.children[0].children] == ["resnet_block"] * 2 + ["conv2d"]


def test_blocks_among_others_in_a_sequence_leave_the_repeated_block_around_them(
    apart: Apart,
) -> None:
    _, root = apart(SEQUENCES)
    assert [part.stem for part in layers(root)] == ["encoder_block"] * 2
    assert [part.stem for part in layers(root)[0].children] == ["resnet_block"] * 2 + ["conv2d"]


def test_the_modules_of_one_dictionary_in_a_list_are_a_layer(apart: Apart) -> None:
    _, root = apart(DICTIONARIES)
    assert [(part.name, part.stem) for part in layers(root)] == [
        ("up_0", "up_block"),
        ("up_1", "up_block"),
    ]
    stems = [part.stem for part in layers(root)[0].children]
    assert stems == ["conv_transpose2d", "cat", "resnet_block", "resnet_block"]


def test_a_level_that_holds_the_next_is_the_frame_around_it(apart: Apart) -> None:
    _, root = apart(RECURSIVE)
    assert [part.stem for part in root.children] == [
        "leaky_relu_conv2d",
        "leaky_relu_conv2d",
        "level",
        "relu_conv_transpose2d",
        "cat",
        "relu_conv_transpose2d",
        "cat",
        "conv2d",
    ]


def test_the_steps_of_a_loop_in_a_layer_are_fusions(apart: Apart) -> None:
    _, root = apart(LOOP)
    block, other = layers(root)
    assert [part.stem for part in block.children].count("cell_step") == 5
    assert len(block.children) < 12
    assert outline(block) == outline(other)


def test_a_block_that_several_inputs_go_through_is_not_opened_for_what_repeats_in_it(
    apart: Apart,
) -> None:
    _, root = apart(FRAMES)
    assert [layer.stem for layer in layers(root)] == ["down"] * 6


def test_a_line_has_no_norm_over_space_before_and_after_its_convolution(apart: Apart) -> None:
    _, root = apart(NORMS)
    assert [part.stem for part in root.children] == [
        "group_norm_conv2d",
        "group_norm",
        "upsample_nearest2d_relu_conv2d",
    ]


def test_a_step_is_given_its_window_so_that_equal_steps_are_one_workload(apart: Apart) -> None:
    program, root = apart(WINDOWS)
    steps = [part for part in root.children if part.stem == "scaled_dot_product_attention"]
    read = {tuple(program.spec(name).shape for name in step.io.inputs) for step in steps}
    assert len(steps) == 12
    assert read == {((2, 1, 8), (2, n, 8), (2, n, 8)) for n in (1, 2, 3)}


def test_a_sequence_of_several_classes_in_a_list_is_a_layer(apart: Apart) -> None:
    _, root = apart(MIXED)
    assert [part.stem for part in layers(root)] == ["layers_block"] * 2
    stems = [part.stem for part in layers(root)[0].children]
    assert stems == ["conv2d", "gate", "residual", "residual"]


def test_an_encoder_and_a_decoder_of_small_blocks_are_layers(apart: Apart) -> None:
    _, root = apart(HALVES)
    assert [part.stem for part in root.children] == ["encoder", "tanh", "decoder"]
    assert [part.stem for part in root.children[0].children] == ["conv2d"] + ["resnet_block"] * 3


def test_each_call_of_an_authors_function_is_a_fusion(apart: Apart) -> None:
    _, root = apart(FUNCTIONS)
    stems = [part.stem for part in root.walk() if part.level == "fusion"]
    assert stems.count("balanced") == 2


def test_a_check_that_python_alone_reads_is_no_part(apart: Apart) -> None:
    program, root = apart(CHECKED)
    assert [part.stem for part in root.kernels()] == ["linear", "relu", "linear"]
    assert program.graph.specialisations


def test_a_call_with_many_parts_in_lists_of_lists_is_a_frame_and_so_are_all_of_its_class(
    apart: Apart,
) -> None:
    _, root = apart(TRANSFORMER)
    layers = [child for child in root.children if child.level == "layer"]
    assert [layer.stem for layer in layers] == ["transformer_block"] * 6
    assert len({drawn(layer) for layer in layers}) == 1
    assert [kernel.stem for kernel in layers[0].kernels()][:2] == ["pad", "cat"]


def test_elements_with_one_number_of_two_lists_are_one_layer(apart: Apart) -> None:
    _, root = apart(TWO_LISTS)
    layers = [child for child in root.children if child.level == "layer"]
    assert len(layers) == 4
    assert len({drawn(layer) for layer in layers}) == 1
    kernels = [kernel.stem for kernel in layers[0].kernels()]
    assert (kernels[0], kernels[-1]) == ("relu", "roll")


def test_a_call_around_a_module_that_is_called_elsewhere_too_is_its_frame(apart: Apart) -> None:
    _, root = apart(SHARED)
    stems = [child.stem for child in root.children if child.level == "layer"]
    assert stems[: len(stems) // 2] == stems[len(stems) // 2 :]
    assert "estimator" not in stems


def test_small_networks_beside_large_ones_of_the_same_blocks_are_layers_too(apart: Apart) -> None:
    small = "self.blocks = self.blocks[:1]\n        self.stem = ResnetBlock(8, 8)"
    twins = HALVES.replace(
        "Decoder(Encoder):\n    pass",
        "Decoder(Encoder):\n    pass\n\n"
        "class Small(Encoder):\n    def __init__(self):\n        super().__init__()\n        "
        + small,
    )
    twins = twins.replace(
        "self.encoder, self.decoder = Encoder(), Decoder()",
        "self.encoder, self.decoder, self.small = Encoder(), Decoder(), Small()",
    )
    _, root = apart(twins.replace("(self.encoder(x))", "(self.encoder(self.small(x)))"))
    assert [p.stem for p in root.children if p.level == "layer"] == ["small", "encoder", "decoder"]


PARTS_OF_A_BLOCK = """
class PreNorm(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(8), fn

    def forward(self, x):
        return self.fn(self.norm(x))

class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) + x

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_qkv, self.to_out = nn.Linear(8, 24, bias=False), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.to_qkv(x).chunk(3, -1)
        return self.to_out(F.scaled_dot_product_attention(q, k, v))

class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        return self.net(x)
"""

WRAPPERS = (
    PARTS_OF_A_BLOCK
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([{attention}, {mlp}]) for _ in range(3)
        )
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        for attn, ff in self.layers:
            x = attn(x){plus}
            x = ff(x){plus}
        return self.head(x)

def get_inputs(): return [torch.randn(2, 6, 8)]
def get_init_inputs(): return []
"""
)


@pytest.mark.parametrize(("call", "plus"), [("PreNorm({})", " + x"), ("Residual(PreNorm({}))", "")])
def test_wrappers_of_an_attention_and_of_an_mlp_in_a_list_are_one_layer(
    apart: Apart, call: str, plus: str
) -> None:
    attention, mlp = call.format("Attention()"), call.format("FeedForward()")
    _, root = apart(WRAPPERS.format(attention=attention, mlp=mlp, plus=plus))
    assert [part.stem for part in layers(root)] == ["layers_block"] * 3
    kernels = [part.stem for part in layers(root)[0].kernels()]
    assert kernels.count("add") == kernels.count("layer_norm") == 2


CONSTANT_QUERIES = """
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.queries, self.memory = nn.Linear(8, 8), nn.Linear(8, 8)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, x, position, memory):
        q = self.queries(x + position)
        x = x + F.scaled_dot_product_attention(q, q, x)
        m = self.memory(memory)
        x = x + F.scaled_dot_product_attention(x + position, m, m)
        return x + self.mlp(x)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 16)
        self.layers = nn.ModuleList([Decoder() for _ in range(2)])

    def forward(self, memory):
        position, x = self.embed.weight.split(8, dim=1)
        position = position.unsqueeze(0).expand(len(memory), -1, -1)
        x = x.unsqueeze(0).expand(len(memory), -1, -1)
        for layer in self.layers:
            x = layer(x, position, memory)
        return x

def get_inputs(): return [torch.randn(2, 6, 8)]
def get_init_inputs(): return []
"""


def test_a_layer_keeps_the_kernels_that_read_views_of_weights_made_outside(apart: Apart) -> None:
    _, root = apart(CONSTANT_QUERIES)
    assert [part.stem for part in root.children] == ["decoder"] * 2


DECODER_LOOP = """
class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.value = nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, h, memory):
        scores = self.value(torch.tanh(self.query(h)[:, None] + memory)).squeeze(-1)
        return (scores.softmax(-1)[:, None] @ memory).squeeze(1)

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.score, self.out = nn.GRUCell(16, 8), Score(), nn.Linear(16, 8)

    def decode(self, x):
        x = torch.cat([x, self.context], -1)
        self.hidden = self.cell(x, self.hidden)
        self.context = self.score(self.hidden, self.memory)
        return self.out(torch.cat([self.hidden, self.context], -1))

    def forward(self, memory):
        self.memory = memory
        self.hidden, self.context = memory.new_zeros(2, 8), memory.new_zeros(2, 8)
        outputs = []
        for x in memory.unbind(1):
            outputs.append(self.decode(x))
        return torch.stack(outputs, 1)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(8, 8), Decoder()

    def forward(self, x):
        return self.decoder(self.encoder(x))

def get_inputs(): return [torch.randn(2, 6, 8)]
def get_init_inputs(): return []
"""


def test_a_turn_that_calls_one_module_among_others_begins_where_its_function_does(
    apart: Apart,
) -> None:
    _, root = apart(DECODER_LOOP)
    steps = [part for part in root.children if part.stem == "decoder_step"]
    assert len(steps) == 6
    for step in steps:
        kernels = [part.stem for part in step.kernels()]
        assert kernels[0] == "cat"
        assert kernels[-1] == "linear"


PAIRS = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        return self.out(F.scaled_dot_product_attention(q, k, v))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([
                Attention(),
                nn.Sequential(
                    nn.LayerNorm(16), nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)
                ),
            ])
            for _ in range(2)
        )

    def forward(self, x):
        for attention, mlp in self.layers:
            x = attention(x) + x
            x = mlp(x) + x
        return x

def get_inputs(): return [torch.randn(2, 8, 16)]
def get_init_inputs(): return []
"""


def test_two_pairs_of_an_attention_and_an_mlp_in_a_list_are_a_model_of_two_layers(
    apart: Apart,
) -> None:
    _, root = apart(PAIRS)
    assert root.level == "model"
    assert [part.level for part in root.children] == ["layer"] * 2


STAGES_AND_A_MIDDLE = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        h = self.conv1(F.silu(self.norm1(x)))
        return x + self.conv2(F.silu(self.norm2(h)))

class Stage(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.conv = Block(), Block(), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        return self.conv(self.second(self.first(x)))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle, self.up = Stage(), nn.ModuleList([Block(), Block()]), Stage()

    def forward(self, x):
        x = self.down(x)
        for block in self.middle:
            x = block(x)
        return self.up(x)

def get_inputs(): return [torch.randn(1, 8, 8, 8)]
def get_init_inputs(): return []
"""


def test_a_stage_of_blocks_that_are_layers_elsewhere_is_a_frame_around_them(apart: Apart) -> None:
    _, root = apart(STAGES_AND_A_MIDDLE)
    assert [part.stem for part in root.children if part.level == "layer"] == ["block"] * 6


WITHOUT_ADDS = """
FUNCTIONS = [
    torch.sin, torch.cos, torch.tanh, torch.sigmoid, torch.atan, torch.erf, torch.asinh, torch.relu,
    F.silu, F.gelu, F.elu, F.selu, F.celu, F.mish, F.softplus, F.softsign,
]

class Season(nn.Module):
    def forward(self, x):
        for function in FUNCTIONS:
            x = function(x)
        return x

class Growth(nn.Module):
    def forward(self, x):
        for function in FUNCTIONS[::-1]:
            x = function(x)
        return x

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([Season(), Growth()]) for _ in range(2)
        )

    def forward(self, x):
        kept = []
        for season, growth in self.layers:
            x = x - season(x)
            kept.append(growth(x))
            x = x - kept[-1]
        return x + torch.stack(kept, dim=1).mean(1)

def get_inputs(): return [torch.randn(2, 4, 8)]
def get_init_inputs(): return []
"""


def test_two_large_pairs_whose_results_are_stacked_are_a_model_of_two_layers(apart: Apart) -> None:
    _, root = apart(WITHOUT_ADDS)
    assert root.level == "model"
    assert [part.level for part in root.children if part.level == "layer"] == ["layer"] * 2
