"""Calls of one class, or of one list, are drawn alike, however many blocks they hold."""

from outlines import Apart

ENDS = """
def get_inputs(): return [torch.randn(2, 16, 8, 8)]
def get_init_inputs(): return []
"""

BLOCK = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.conv1 = nn.BatchNorm2d(16), nn.Conv2d(16, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 1)

    def forward(self, x):
        return x + self.conv2(F.relu(self.conv1(self.norm(x))))
"""

PAIRS_IN_A_LIST = (
    BLOCK
    + """
class Stage(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([nn.Conv2d(16, 16, 3, padding=1), Block()]) for _ in range(depth)
        )

    def forward(self, x):
        for position, block in self.layers:
            x = block(position(x) + x)
        return x

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList(
            nn.ModuleList([
                Stage(depth), nn.Sequential(nn.Conv2d(16, 16, 1), nn.BatchNorm2d(16))
            ])
            for depth in (1, 2, 2)
        )

    def forward(self, x):
        for stage, project in self.stages:
            x = project(stage(x))
        return x
"""
    + ENDS
)

STAGES = (
    BLOCK
    + """
class Stage(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.depth = depth
        for n in range(depth):
            self.add_module(f"block_{n}", Block())

    def forward(self, x):
        for n in range(self.depth):
            x = self.get_submodule(f"block_{n}")(x)
        return x

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stage1, self.stage2, self.stage3 = Stage(3), Stage(1), Stage(2)

    def forward(self, x):
        return self.stage3(self.stage2(self.stage1(x)))
"""
    + ENDS
)

BLOCKS_OF_CONVOLUTIONS = (
    """
class Separable(nn.Module):
    def __init__(self):
        super().__init__()
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.norm, self.pointwise = nn.BatchNorm2d(16), nn.Conv2d(16, 16, 1)

    def forward(self, x):
        return F.relu(self.pointwise(F.relu(self.norm(self.depthwise(x)))))

class Block(nn.Module):
    def __init__(self, adds):
        super().__init__()
        self.adds, self.stack = adds, nn.Sequential(Separable(), Separable(), Separable())

    def forward(self, x):
        return self.stack(x) + x if self.adds else self.stack(x)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(True), Block(True), Block(False))

    def forward(self, x):
        return self.blocks(x)
"""
    + ENDS
)

SCALED_BY_A_HINT = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2, self.norm3, self.norm4 = (nn.LayerNorm(16) for _ in range(4))
        self.up1, self.up2, self.up3, self.up4 = (nn.Linear(16, 32) for _ in range(4))
        self.down1, self.down2, self.down3, self.down4 = (nn.Linear(32, 16) for _ in range(4))

    def forward(self, x):
        x = x + self.down1(F.relu(self.up1(self.norm1(x))))
        x = x + self.down2(F.gelu(self.up2(self.norm2(x))))
        x = x + self.down3(F.silu(self.up3(self.norm3(x))))
        return x + self.down4(F.elu(self.up4(self.norm4(x))))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(6))
        self.scale = nn.Parameter(torch.ones(16))

    def forward(self, x):
        hint = x
        for number, block in enumerate(self.blocks):
            x = block(x)
            if number % 3 == 0:
                x = x + hint * self.scale
        return x

def get_inputs(): return [torch.randn(2, 8, 16)]
def get_init_inputs(): return []
"""

U_NET = (
    """
class Res(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, inputs), nn.GroupNorm(4, 16)
        self.conv1 = nn.Conv2d(inputs, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.shortcut = nn.Conv2d(inputs, 16, 1)

    def forward(self, x):
        h = self.conv1(F.silu(self.norm1(x)))
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(h)))

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.out = nn.GroupNorm(4, 16), nn.Linear(16, 16)
        self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        h = self.norm(x).flatten(2).transpose(1, 2)
        h = self.out(F.scaled_dot_product_attention(self.q(h), self.k(h), self.v(h)))
        return x + h.transpose(1, 2).reshape(x.shape)

class Down(nn.Module):
    def __init__(self):
        super().__init__()
        self.res = nn.ModuleList(Res(16) for _ in range(2))
        self.attentions = nn.ModuleList(Attention() for _ in range(2))

    def forward(self, x):
        skips = []
        for res, attention in zip(self.res, self.attentions):
            x = attention(res(x))
            skips.append(x)
        return x, skips

class Middle(nn.Module):
    def __init__(self):
        super().__init__()
        self.res, self.attention = nn.ModuleList(Res(16) for _ in range(2)), Attention()

    def forward(self, x):
        return self.res[1](self.attention(self.res[0](x)))

class Up(nn.Module):
    def __init__(self):
        super().__init__()
        self.res = nn.ModuleList(Res(32) for _ in range(3))
        self.attentions = nn.ModuleList(Attention() for _ in range(3))

    def forward(self, x, skips):
        for res, attention in zip(self.res, self.attentions):
            x = attention(res(torch.cat([x, skips.pop()], dim=1)))
        return x

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(16, 16, 3, padding=1)
        self.downs, self.ups = nn.ModuleList([Down(), Down()]), nn.ModuleList([Up(), Up()])
        self.middle = Middle()

    def forward(self, x):
        x = self.first(x)
        skips = [x, x]
        for down in self.downs:
            x, new = down(x)
            skips += new
        x = self.middle(x)
        for up in self.ups:
            x = up(x, skips)
        return x
"""
    + ENDS
)

BLOCK_IN_A_BLOCK = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, x, memory):
        q, k, v = self.q(x), self.k(memory), self.v(memory)
        return self.out(F.scaled_dot_product_attention(q, k, v))

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.norm1, self.norm2 = Attention(), nn.LayerNorm(16), nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x, memory):
        x = self.norm1(x + self.attention(x, memory))
        return self.norm2(x + self.mlp(x))

class DecoderBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.norm, self.block = Attention(), nn.LayerNorm(16), Block()

    def forward(self, x, memory):
        return self.block(self.norm(x + self.attention(x, x)), memory)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.ModuleList(Block() for _ in range(2))
        self.decoder = nn.ModuleList(DecoderBlock() for _ in range(2))

    def forward(self, x):
        memory = x
        for block in self.encoder:
            memory = block(memory, memory)
        for block in self.decoder:
            x = block(x, memory)
        return x

def get_inputs(): return [torch.randn(2, 8, 16)]
def get_init_inputs(): return []
"""


def test_a_stage_of_one_block_beside_longer_ones_in_a_list_is_drawn_as_they_are(
    apart: Apart,
) -> None:
    _, root = apart(PAIRS_IN_A_LIST)
    assert [(p.level, p.stem) for p in root.children] == [
        ("layer", "stage"),
        ("fusion", "conv2d_batch_norm"),
    ] * 3


def test_a_stage_of_one_block_has_the_name_of_a_stage(apart: Apart) -> None:
    _, root = apart(STAGES)
    assert [(p.level, p.stem) for p in root.children] == [("layer", "stage")] * 3


def test_a_block_that_adds_its_input_to_a_stack_is_a_layer_and_so_is_one_that_does_not(
    apart: Apart,
) -> None:
    _, root = apart(BLOCKS_OF_CONVOLUTIONS)
    assert [(p.level, p.stem) for p in root.children] == [("layer", "block")] * 3
    assert [p.stem for p in root.children[0].children] == ["separable"] * 3 + ["add"]


def test_large_blocks_of_which_some_are_followed_by_an_add_are_layers_one_by_one(
    apart: Apart,
) -> None:
    _, root = apart(SCALED_BY_A_HINT)
    layers = [p.stem for p in root.children if p.level == "layer"]
    assert layers == ["block"] * 6


def test_the_blocks_of_a_u_net_are_layers_on_its_way_down_in_its_middle_and_on_its_way_up(
    apart: Apart,
) -> None:
    _, root = apart(U_NET)
    assert [part.stem for part in root.children] == [
        "conv2d",
        *["res", "attention"] * 4,
        *["res", "attention", "res"],
        *["cat", "res", "attention"] * 6,
    ]


def test_a_block_inside_of_another_has_the_parts_that_it_has_as_a_layer(apart: Apart) -> None:
    _, root = apart(BLOCK_IN_A_BLOCK)
    assert [p.stem for p in root.children] == ["block"] * 2 + ["decoder_block"] * 2
    parts = [p.stem for p in root.children[0].children]
    decoder_parts = [p.stem for p in root.children[2].children]
    assert len(parts) == 4
    assert decoder_parts == [*parts[:2], *parts]
