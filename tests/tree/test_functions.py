"""Calls of an author's functions and of modules' methods are drawn as calls of modules are."""

from outlines import Apart, drawn

from runner.tree.workload import identity

ENDS = """
def get_inputs(): return [torch.rand(2, 12, 8)]
def get_init_inputs(): return []
"""

METHODS = (
    """
class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(8, 16), nn.Linear(16, 8)

    def mix(self, x):
        return self.outer(F.gelu(self.inner(x)))

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.first, self.second = Mixer(), Mixer()

    def run(self, x):
        x = x + self.first.mix(self.norm1(x))
        return x + self.second.mix(self.norm2(x))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = {blocks}
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        for block in self.blocks:
            x = block.run(x)
        return self.head(x)
"""
    + ENDS
)

OF_METHODS = """\
some_model (model)
  3 x block (layer)
    layer_norm
    mixer: linear, gelu, linear
    add
    layer_norm
    mixer: linear, gelu, linear
    add
  linear"""


def test_a_method_that_is_called_by_name_is_a_call_of_its_module(apart: Apart) -> None:
    _, root = apart(METHODS.format(blocks="nn.ModuleList(Block() for _ in range(3))"))
    assert drawn(root) == OF_METHODS


def test_a_module_in_a_plain_list_is_called_as_any_other(apart: Apart) -> None:
    source = METHODS.format(blocks="[Block() for _ in range(3)]")
    _, root = apart(source.replace("block.run(x)", "block(x)").replace("def run(", "def forward("))
    assert drawn(root) == OF_METHODS


def test_two_methods_of_one_class_are_told_apart(apart: Apart) -> None:
    _, root = apart(
        """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(8, 8))

    def encode(self, x):
        return torch.tanh(x @ self.weight)

    def decode(self, x):
        return torch.atanh(0.9 * x) @ self.weight.t()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scaled, self.head = Scaled(), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.scaled.decode(self.scaled.encode(x)).relu().mean(1)).softmax(-1)
"""
        + ENDS
    )
    stems = [part.stem for part in root.children]
    assert stems[:2] == ["scaled_encode", "scaled_decode"]


def test_a_forward_of_an_autograd_function_is_a_function(apart: Apart) -> None:
    program, _ = apart(
        """
class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        return grad

def neuron(x):
    return Spike.apply(x - 0.5)

class Model(nn.Module):
    def forward(self, x):
        return neuron(x).sum(-1)
"""
        + ENDS
    )
    origins = [op.origin for op in program.graph.operations if op.name == "gt"]
    assert [at.functions[0][1] for at in origins if at] == ["neuron"]


FOLDED = (
    """
class Encoder(nn.Module):
    def neuron(self, x, v):
        v = v + 0.1 * (x - v)
        z = (v > 0.4).to(v.dtype)
        return z, v - z * (v - 0.1)

    def forward(self, x):
        v, spikes = torch.zeros(2, 8), []
        for t in range(6):
            z, v = self.neuron(x[:, t], v)
            spikes.append(z)
        return torch.stack(spikes)

class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer, self.cell = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, x):
        state, seen = None, []
        for step in x:
            now = torch.sigmoid(self.inner(step))
            state = now if state is None else now * self.cell(state)
            seen.append(self.mlp(F.relu(self.outer(state))))
        return torch.stack(seen)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.network = Encoder(), Network()

    def forward(self, x):
        return self.network(self.encode(x)).amax(0).log_softmax(-1)
"""
    + ENDS
)


def test_the_first_turn_of_a_loop_is_a_turn_where_it_holds_other_operations(apart: Apart) -> None:
    _, root = apart(FOLDED)
    encoder, *steps = [part for part in root.children if part.level == "layer"]
    assert encoder.stem == "encoder"
    assert [part.stem for part in encoder.children].count("encoder_step") == 6
    assert [part.stem for part in steps] == ["network_step"] * 6


LONG = (
    """
def recur(x, cell, h):
    out = []
    for t in range(12):
        h = cell(x[:, t], h)
        out.append(h)
    return torch.stack(out, 1), h

class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.there, self.back = nn.GRUCell(8, 8), nn.GRUCell(8, 8)

    def forward(self, x, h):
        a, last_a = recur(x, self.there, h)
        b, last_b = recur(x.flip(1), self.back, h)
        return torch.cat([a, b.flip(1)], -1), last_a + last_b

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.twice, self.head = Twice(), nn.Linear(16, 4)

    def forward(self, x):
        y, last = self.twice(x, x[:, 0])
        return self.head(torch.relu(y)).softmax(-1), last
"""
    + ENDS
)


def test_a_function_that_would_be_a_run_of_lone_kernels_is_one_fusion(apart: Apart) -> None:
    _, root = apart(LONG)
    assert [part.stem for part in root.children].count("recur") == 2


PASSES = (
    """
class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.moves = nn.Parameter(torch.rand(8, 8))

    def there(self, x):
        p = [x[:, 0]]
        for t in range(1, 12):
            top = p[-1].amax(-1, keepdim=True)
            p.append(torch.log(torch.exp(p[-1] - top) @ self.moves) + top + x[:, t])
        return torch.stack(p, 1)

    def back(self, x):
        p = [x[:, -1]]
        for t in range(10, -1, -1):
            top = (p[-1] + x[:, t]).amax(-1, keepdim=True)
            p.append(torch.log(torch.exp(p[-1] - top) @ self.moves.t()) + top)
        return torch.stack(p, 1)

    def forward(self, x):
        return (self.there(x) + self.back(x)).softmax(-1)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.chain = Chain()

    def forward(self, x):
        return self.chain(torch.relu(x)).sum(1).log()
"""
    + ENDS
)


def test_functions_that_are_too_large_for_fusions_are_layers(apart: Apart) -> None:
    _, root = apart(PASSES)
    layers = [part for part in root.children if part.level == "layer"]
    assert [part.stem for part in layers] == ["there", "back"]
    assert [part.stem for part in layers[0].children].count("there_step") == 11


CONSTANTS = (
    """
class Rotated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.angles = nn.Parameter(torch.rand(width))
        self.weight = nn.Parameter(torch.rand(width, width))

    def forward(self, x):
        turned = self.weight * torch.cos(self.angles) + self.weight.t() * torch.sin(self.angles)
        return F.linear(x, turned)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Rotated(8), Rotated(8)

    def forward(self, x):
        return x + self.second(F.gelu(self.first(F.gelu(x))))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.Sequential(Block(), Block(), Block()), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.blocks(x))
"""
    + ENDS
)


def test_what_depends_on_no_input_stays_in_its_module(apart: Apart) -> None:
    _, root = apart(CONSTANTS)
    assert (
        drawn(root)
        == """\
some_model (model)
  3 x block (layer)
    gelu
    rotated: scaled_cos, scaled_sin, add, linear
    gelu
    rotated: scaled_cos, scaled_sin, add, linear
    add
  linear"""
    )


MANY = (
    """
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList(torch.rand(8, 8) for _ in range(20))

    def forward(self, x):
        return torch.stack([x @ weight for weight in self.weights]).amax(0)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.experts, self.out = nn.LayerNorm(8), Experts(), nn.Linear(8, 8)

    def forward(self, x):
        return torch.tanh(self.out(self.experts(self.norm(x))))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.Sequential(Block(), Block(), Block()), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.blocks(x))
"""
    + ENDS
)


def test_a_module_that_would_be_a_run_of_lone_kernels_is_one_fusion(apart: Apart) -> None:
    _, root = apart(MANY)
    block = root.children[0]
    assert [part.stem for part in block.children] == ["layer_norm", "experts", "linear_tanh"]


SPLINE = (
    """
def normalized(x):
    widths = x.softmax(-1) * 0.9 + 0.01
    return F.pad(widths.cumsum(-1), (1, 0)) * 2 - 1

def spline(x, widths, heights):
    left, top = normalized(widths), normalized(heights)
    at = (x[..., None] >= left).sum(-1, keepdim=True).clamp(1, 4)
    x0, x1 = left.gather(-1, at - 1), left.gather(-1, at)
    y0, y1 = top.gather(-1, at - 1), top.gather(-1, at)
    slope = (y1 - y0) / (x1 - x0)
    share = (x[..., None] - x0) / (x1 - x0)
    y = y0 + (y1 - y0) * (slope * share**2 + share * (1 - share)) / (slope + share)
    return y[..., 0]

class Coupling(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 32))

    def forward(self, x):
        a, b = x.chunk(2, -1)
        widths, heights = self.net(a).view(2, 12, 4, 8).split(4, -1)
        return torch.cat([spline(torch.tanh(b), widths, heights), a], -1)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.flow, self.head = nn.Sequential(Coupling(), Coupling(), Coupling()), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.flow(x))
"""
    + ENDS
)


def test_a_function_that_is_more_than_those_that_it_calls_is_one_fusion(apart: Apart) -> None:
    _, root = apart(SPLINE)
    coupling = root.children[0]
    assert [part.stem for part in coupling.children] == ["net", "tanh", "spline", "cat"]


CODEC = (
    """
class Unit(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return x + self.b(torch.tanh(self.a(torch.sin(x))))

class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.out = nn.Linear(8, 8), nn.Linear(8, 8)
        self.first, self.second, self.third, self.fourth = Unit(), Unit(), Unit(), Unit()

    def forward(self, x):
        x = self.second(self.first(self.into(x)).exp()).log1p()
        return self.out(self.fourth(self.third(x).exp()).log1p())

class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Half(), Half()

    def encode(self, x):
        return self.encoder(x).round()

    def decode(self, codes):
        return self.decoder(codes * 0.5)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.codec = Codec()

    def forward(self, x):
        codes = self.codec.encode(x)
        return codes.long(), self.codec.decode(codes)
"""
    + ENDS
)


def test_methods_of_one_module_are_the_frames_around_its_halves(apart: Apart) -> None:
    _, root = apart(CODEC)
    assert [part.stem for part in root.children if part.level == "layer"] == ["half", "half"]


SCAN = (
    """
def decay_scan(x, a):
    state = torch.zeros_like(x[:, 0])
    out = torch.zeros_like(x)
    for t in range(x.shape[1]):
        state = state * a[:, t] + x[:, t]
        out[:, t] = torch.tanh(state) * a[:, t]
    return out

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj, self.out = nn.Linear(8, 16), nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        x, a = self.proj(x).chunk(2, -1)
        return self.out(self.norm(decay_scan(x, a.sigmoid())))
"""
    + ENDS
)


def test_a_function_that_runs_a_loop_is_a_layer_of_its_turns(apart: Apart) -> None:
    _, root = apart(SCAN)
    assert [part.stem for part in root.children] == [
        "linear", "sigmoid", "decay_scan", "output_head",
    ]  # fmt: skip
    turns = [part.stem for part in root.children[2].children]
    assert turns == ["decay_scan_step"] * 12 + ["stack"]


POOL = (
    """
def mean_pool(x, mask):
    total = (x * mask).sum(1)
    return total / mask.pow(2).sum(1).sqrt()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
        self.classifier = nn.Linear(8, 4)

    def forward(self, x):
        return self.classifier(mean_pool(self.encoder(x), x.abs()))
"""
    + ENDS
)


def test_an_output_head_takes_no_part_of_a_functions_call(apart: Apart) -> None:
    _, root = apart(POOL)
    assert [part.stem for part in root.children] == ["encoder", "abs", "mean_pool", "linear"]


def test_an_output_head_includes_no_whole_call_of_a_function_before_it(apart: Apart) -> None:
    log_pool = "def mean_pool(x, mask):\n    return x.exp().log1p().mean(1).sqrt()\n"
    model = POOL[POOL.index("\nclass") :].replace("x.abs()", "x")
    _, root = apart(log_pool + model)
    assert [part.stem for part in root.children] == ["encoder", "mean_pool", "linear"]


SAMPLED = (
    """
def sample(bins, weights):
    cdf = torch.cumsum(weights / weights.sum(-1, keepdim=True), -1)
    u = torch.linspace(0.0, 1.0, 5).expand(2, 5).contiguous()
    indices = torch.searchsorted(cdf, u, right=True).clamp(max=11)
    return bins.gather(1, indices) + u

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.fine = nn.Linear(8, 1), nn.Linear(5, 4)

    def forward(self, x):
        return self.fine(sample(x.mean(-1), self.net(x).squeeze(-1).exp()))
"""
    + ENDS
)


def test_a_function_with_a_constant_is_one_fusion(apart: Apart) -> None:
    _, root = apart(SAMPLED)
    assert "sample" in [part.stem for part in root.children]


FARTHEST = (
    """
def sample(points):
    picked = torch.zeros(2, 4, dtype=torch.long)
    distance = torch.full((2, 12), 1e10)
    farthest = torch.zeros(2, dtype=torch.long)
    for i in range(4):
        picked[:, i] = farthest
        center = points[torch.arange(2), farthest].unsqueeze(1)
        to_center = ((points - center) ** 2).sum(-1)
        nearer = to_center < distance
        distance[nearer] = to_center[nearer]
        farthest = distance.max(-1)[1]
    return picked

class Model(nn.Module):
    def forward(self, points):
        return sample(points)
"""
    + ENDS
)


def test_turns_that_select_by_a_mask_and_write_elsewhere_are_one_workload(apart: Apart) -> None:
    program, root = apart(FARTHEST)
    turns = [part for part in root.children if part.stem == "sample_step"]
    assert len(turns) == 4
    assert identity(program, turns[1]) == identity(program, turns[2])


def test_turns_of_a_loop_in_a_function_of_a_layer_are_fusions(apart: Apart) -> None:
    layers = SCAN.replace("class Model", "class Mixer").replace(
        "def get_inputs",
        """class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Mixer(), Mixer()])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

def get_inputs""",
    )
    _, root = apart(layers)
    stems = [part.stem for part in root.children[1].children]
    assert stems.count("decay_scan_step") == 12


TWIN = (
    """
class Twin(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
        self.value1, self.advantage1 = nn.Linear(16, 1), nn.Linear(16, 4)
        self.value2, self.advantage2 = nn.Linear(16, 1), nn.Linear(16, 4)

    def forward(self, x):
        x = self.shared(x)
        advantage = self.advantage1(x)
        return self.value1(x) + advantage - advantage.mean(-1, keepdim=True)

    def both(self, x):
        x = self.shared(x)
        advantage = self.advantage1(x)
        first = self.value1(x) + advantage - advantage.mean(-1, keepdim=True)
        advantage = self.advantage2(x)
        return first, self.value2(x) + advantage - advantage.mean(-1, keepdim=True)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.twin = Twin()

    def forward(self, x):
        x = x[:, 0]
        return self.twin(x), self.twin.both(x)
"""
    + ENDS
)


def test_a_module_is_no_row_of_blocks_in_one_of_its_methods_only(apart: Apart) -> None:
    _, root = apart(TWIN)
    assert [part.stem for part in root.children] == ["twin", "twin_both"]
    shared = [part for part in root.walk() if part.stem == "shared"]
    assert [part.level for part in shared] == ["fusion", "fusion"]


BRANCHES = (
    """
def extreme(x, largest):
    if largest:
        x = x * 2.5
    else:
        x = x * 0.5 + 0.5
    x = x.clamp(-2, 2)
    if largest:
        return x.amax(-1)
    return x.amin(-1)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        x = self.fc(x)
        return torch.stack([extreme(x, largest) for largest in (False, True)])
"""
    + ENDS
)


def test_calls_of_a_function_in_different_branches_are_two_fusions(apart: Apart) -> None:
    _, root = apart(BRANCHES)
    calls = [part for part in root.walk() if part.stem == "extreme"]
    assert [[child.stem for child in call.children] for call in calls] == [
        ["mul", "add", "clamp", "amin"],
        ["mul", "clamp", "amax"],
    ]
