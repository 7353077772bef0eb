"""Lists of pairs (attention, MLP), wrapped or not; stages; and blocks that have no class."""

from outlines import Apart

START = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return self.out(F.scaled_dot_product_attention(q, k, v))

class PreNorm(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(16), fn

    def forward(self, x):
        return self.fn(self.norm(x))

class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) + x

def mlp():
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
"""
END = """
def get_inputs(): return [torch.randn(2, 8, 16)]
def get_init_inputs(): return []
"""
WRAPPED_SEQUENTIALS = f"""
{START}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([PreNorm(Attention()), PreNorm(mlp())]) for _ in range(3)
        )

    def forward(self, x):
        for attention, mlp in self.layers:
            x = attention(x) + x
            x = mlp(x) + x
        return x
{END}
"""


def test_a_wrapped_sequential_and_a_wrapped_attention_are_one_layer(apart: Apart) -> None:
    _, root = apart(WRAPPED_SEQUENTIALS)
    assert [part.level for part in root.children] == ["layer"] * 3
    stems = [part.stem for part in root.children[0].children]
    assert stems == ["attention_pre_norm", "add", "mlp_pre_norm", "add"]


STACKS_OF_THREE = f"""
{START}
class Stack(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([
                Residual(PreNorm(Attention())),
                Residual(PreNorm(Attention())),
                Residual(PreNorm(mlp())),
            ])
            for _ in range(depth)
        )

    def forward(self, x):
        for first, second, mlp in self.layers:
            x = mlp(second(first(x)))
        return x

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.middle, self.last = Stack(1), nn.Linear(16, 16), Stack(2)

    def forward(self, x):
        return self.last(self.middle(self.first(x)))
{END}
"""


def test_three_wrappers_in_each_element_are_one_layer_in_a_repeated_class_too(
    apart: Apart,
) -> None:
    _, root = apart(STACKS_OF_THREE)
    layers = [part for part in root.children if part.level == "layer"]
    assert [len(layer.children) for layer in layers] == [3, 3, 3]
    assert [layer.stem for layer in layers[1:]] == ["stack_block"] * 2  # the class with the list


SEVERAL_STREAMS = """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(16, 16) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x, source):
        weights = (self.k(source).mT @ self.v(source)).relu()
        message = self.norm1(self.out(self.q(x) @ weights))
        return x + self.norm2(self.mlp(torch.cat([x, message], dim=-1)))

class Matching(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Encoder() for _ in range(2))

    def forward(self, x, y):
        for layer in self.layers:
            x, y = layer(x, y), layer(y, x)
        return x, y

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
        self.matching = Matching()

    def forward(self, x, y):
        x, y = self.matching(self.features(x), self.features(y))
        return x @ y.mT

def get_inputs(): return [torch.randn(2, 8, 16), torch.randn(2, 8, 16)]
def get_init_inputs(): return []
"""


def test_large_blocks_that_two_streams_pass_through_are_layers(apart: Apart) -> None:
    _, root = apart(SEVERAL_STREAMS)
    assert [part.stem for part in root.children].count("encoder") == 4


STAGES = """
def convolution(width):
    return [nn.Conv2d(width, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()]

class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(*convolution(3), *convolution(8))
        self.second = nn.Sequential(*convolution(8), *convolution(8), nn.MaxPool2d(2))
        self.third = nn.Sequential(*convolution(8), *convolution(8), *convolution(8))

    def forward(self, x):
        first = self.first(x)
        second = self.second(first)
        return first, second, self.third(second)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.head = Features(), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        return [self.head(x) for x in self.features(x)]

def get_inputs(): return [torch.randn(1, 3, 16, 16)]
def get_init_inputs(): return []
"""


def test_three_stages_of_convolutions_are_three_layers(apart: Apart) -> None:
    _, root = apart(STAGES)
    layers = [part for part in root.children if part.level == "layer"]
    assert [layer.stem for layer in layers] == ["first", "second", "third"]
    assert len(layers[2].children) == 3


MASKED_LINES = """
class MaskedLinear(nn.Linear):
    def __init__(self):
        super().__init__(16, 16)
        self.register_buffer("mask", torch.ones(16, 16).tril())

    def forward(self, x):
        return F.linear(x, self.weight * self.mask, self.bias)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        lines = [module for _ in range(3) for module in (MaskedLinear(), nn.ReLU())]
        self.net = nn.Sequential(*lines, MaskedLinear())

    def forward(self, x):
        return self.net(x)

def get_inputs(): return [torch.randn(2, 16)]
def get_init_inputs(): return []
"""


def test_a_module_with_one_contraction_and_its_activation_are_one_fusion(apart: Apart) -> None:
    _, root = apart(MASKED_LINES)
    assert [(part.level, part.stem) for part in root.children] == [
        *[("fusion", "masked_linear_relu")] * 3,
        ("fusion", "masked_linear"),
    ]


LOOP_IN_A_CLASS = f"""
class Levels(nn.Module):
    def __init__(self):
        super().__init__()
        self.gates = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
        self.mixes = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        for gate, mix in zip(self.gates, self.mixes):
            x = x + gate(x).sigmoid() * mix(x).tanh()
        return x

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.levels, self.head = Levels(), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.levels(x).mean(1))
{END}
"""


def test_a_block_of_a_loop_has_the_name_of_the_class_around_it(apart: Apart) -> None:
    _, root = apart(LOOP_IN_A_CLASS)
    assert [part.stem for part in root.children if part.level == "layer"] == ["levels_block"] * 3


CONVOLUTION_EVERYWHERE = """
class Padded(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(8, 8, 3)

    def forward(self, x):
        return torch.where(x > 0, self.conv(torch.cat([torch.zeros_like(x[..., :2]), x], -1)), x)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Padded(), Padded()

    def forward(self, x):
        return x + self.second(F.elu(self.first(F.elu(x))))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(Padded(), Block(), Padded(), Block(), Padded())

    def forward(self, x):
        return self.net(x)

def get_inputs(): return [torch.randn(1, 8, 16)]
def get_init_inputs(): return []
"""


def test_a_call_that_is_a_fusion_in_a_layer_is_one_beside_it_too(apart: Apart) -> None:
    _, root = apart(CONVOLUTION_EVERYWHERE)
    assert [(part.level, part.stem) for part in root.children] == [
        ("fusion", "padded"),
        *[("layer", "block"), ("fusion", "padded")] * 2,
    ]


TWO_BLOCKS_IN_A_STAGE = """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(2, width), nn.Conv2d(width, 8, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, padding=1)
        self.skip = nn.Conv2d(width, 8, 1) if width != 8 else nn.Identity()

    def forward(self, x):
        h = self.conv1(F.silu(self.norm1(x)))
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.ModuleList(nn.Module() for _ in range(2))
        self.up[0].block = nn.ModuleList([Block(16), Block(8)])
        self.up[1].block = nn.ModuleList([Block(8), Block(8)])
        self.up[1].upsample = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        x = self.first(x)
        for stage in self.up:
            for block in stage.block:
                x = block(x)
            if hasattr(stage, "upsample"):
                x = stage.upsample(F.interpolate(x, scale_factor=2.0))
        return self.last(F.silu(x))

class Encoder(Decoder):
    pass

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(), Decoder()
        self.wide = nn.Conv2d(8, 16, 1)

    def forward(self, x):
        return self.decoder(self.wide(self.encoder(x)))

def get_inputs(): return [torch.randn(1, 16, 8, 8)]
def get_init_inputs(): return []
"""


def test_two_blocks_in_a_list_are_two_fusions_of_a_decoder(apart: Apart) -> None:
    _, root = apart(TWO_BLOCKS_IN_A_STAGE)
    decoder = next(part for part in root.children if part.stem == "decoder")
    assert [part.stem for part in decoder.children].count("block") == 4


RECURRENCE = """
class Neuron(nn.Module):
    def __init__(self):
        super().__init__()
        self.input, self.state = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x, h=None):
        x = self.input(x)
        return torch.tanh(x if h is None else x + self.state(h).sigmoid() * h)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.neuron, self.head = Neuron(), nn.Linear(16, 4)

    def forward(self, x):
        h = None
        for turn in x.unbind(1):
            h = self.neuron(turn, h)
        return self.head(h).softmax(-1)

def get_inputs(): return [torch.randn(2, 6, 16)]
def get_init_inputs(): return []
"""


def test_the_first_turn_of_a_recurrence_is_drawn_as_the_others_are(apart: Apart) -> None:
    _, root = apart(RECURRENCE)
    neurons = [part for part in root.children if part.stem == "neuron"]
    assert [neuron.level for neuron in neurons] == ["layer"] * 6


REST_OF_A_FUNCTION = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(8, 8, 3, padding=1) for _ in range(2))

    def forward(self, x):
        return x + self.conv2(F.relu(self.conv1(x)))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.blocks, self.head = nn.Sequential(Block(), Block(), Block()), nn.Linear(8, 4)

    def forward_features(self, x):
        return self.blocks(F.max_pool2d(F.relu(self.norm(self.conv(x))), 2))

    def forward(self, x):
        return self.head(self.forward_features(x).mean((2, 3)))

def get_inputs(): return [torch.randn(1, 3, 16, 16)]
def get_init_inputs(): return []
"""


def test_what_is_left_of_a_function_that_calls_layers_is_not_called_after_it(apart: Apart) -> None:
    _, root = apart(REST_OF_A_FUNCTION)
    assert root.children[0].stem == "conv2d_batch_norm_relu_max_pool2d"


SCALED_CONVOLUTIONS = """
class Scaled(nn.Module):
    def __init__(self, size=3):
        super().__init__()
        self.conv = nn.Conv2d(8, 8, size, padding=size // 2)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return F.conv2d(x, self.conv.weight * self.scale, padding="same")

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.pool = Scaled(), Scaled(), nn.AvgPool2d(2)

    def forward(self, x):
        return self.pool(F.relu(self.conv2(F.relu(self.conv1(x)))))

class Last(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = Scaled(), Scaled(), Scaled(1)

    def forward(self, x):
        return self.conv3(F.relu(self.conv2(F.relu(self.conv1(x)))))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs = nn.ModuleList([nn.Sequential(Scaled(1), nn.ReLU())])
        self.layers = nn.ModuleList([Block(), Block(), Last()])

    def forward(self, x):
        x = self.inputs[0](x)
        for layer in self.layers:
            x = layer(x)
        return x.mean((2, 3))

def get_inputs(): return [torch.randn(1, 8, 16, 16)]
def get_init_inputs(): return []
"""


def test_a_call_of_lines_is_a_layer_and_a_line_is_called_after_its_module(apart: Apart) -> None:
    _, root = apart(SCALED_CONVOLUTIONS)
    assert [(part.level, part.stem) for part in root.children] == [
        ("fusion", "scaled_relu"),
        *[("layer", "block")] * 2,
        ("layer", "last"),
        ("kernel", "mean"),
    ]


SUBLAYERS_IN_TURNS = f"""
{START}
class Residue(nn.Module):
    def forward(self, x, residual):
        return x + residual

class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.ff = mlp()

    def forward(self, x):
        return self.ff(x)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([nn.LayerNorm(16), kind(), Residue()])
            for _ in range(2)
            for kind in (Attention, FeedForward)
        )

    def forward(self, x):
        for norm, block, residue in self.layers:
            x = residue(block(norm(x)), x)
        return x
{END}
"""


def test_sublayers_that_take_turns_in_a_list_are_one_layer_together(apart: Apart) -> None:
    _, root = apart(SUBLAYERS_IN_TURNS)
    assert [part.level for part in root.children] == ["layer"] * 2
    stems = [part.stem for part in root.children[1].children]
    assert stems == ["layer_norm", "attention", "add", "layer_norm", "feed_forward", "add"]


HEADS = """
class Tracks(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear, self.scale = nn.Linear(16, width), nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.softplus(self.linear(x)) * F.softplus(self.scale)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.heads = nn.ModuleDict(
            {"mouse": nn.ModuleDict({"coarse": Tracks(2), "fine": Tracks(4), "all": Tracks(8)})}
        )

    def forward(self, x):
        x = self.body(x)
        return {n: head(x) for heads in self.heads.values() for n, head in heads.items()}

def get_inputs(): return [torch.randn(2, 8)]
def get_init_inputs(): return []
"""


def test_heads_side_by_side_in_a_dictionary_are_no_fusion_together(apart: Apart) -> None:
    _, root = apart(HEADS)
    assert [part.stem for part in root.children] == ["body", *["tracks"] * 3]


BRANCHES = """
class Branch(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(8, 8, size, padding=size // 2), nn.BatchNorm2d(8)

    def forward(self, x):
        return self.norm(self.conv(x))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.layers = nn.ModuleList(
            nn.ModuleList([Branch(3), Branch(1)]) for _ in range(3)
        )

    def forward(self, x):
        x = self.first(x)
        for conv, skip in self.layers:
            x = F.relu(conv(x) + skip(x))
        return x.mean((2, 3))

def get_inputs(): return [torch.randn(1, 3, 16, 16)]
def get_init_inputs(): return []
"""


def test_two_branches_that_are_added_in_an_element_are_one_layer(apart: Apart) -> None:
    _, root = apart(BRANCHES)
    assert [part.level for part in root.children].count("layer") == 3
