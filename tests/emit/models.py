"""Small models, each with something about it that a decomposition can get wrong."""

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

Decomposed = Callable[..., Path]
NO_INIT = "def get_init_inputs(): return []\n"

MODELS = {
    "in-place writes through views": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        out = torch.zeros(3, 4, 8)
        h = x.clone()
        for t in range(3):
            h.relu_()
            h += 1.0
            out[t] = self.fc(h)
            out[t, :, 2:4].mul_(2.0)
        return out

def get_inputs(): return [torch.randn(4, 8)]
""",
    "several outputs in a dict": """
class Model(nn.Module):
    def forward(self, x):
        values, places = torch.topk(x, 2, dim=-1)
        return {"values": values * 2, "places": places, "rest": [x.exp(), (x.sin(), None, 3)]}

def get_inputs(): return [torch.randn(4, 8)]
""",
    "inputs that are no tensors": """
class Model(nn.Module):
    def forward(self, x, factor, flip, mask=None):
        x = x * factor
        if flip:
            x = -x
        return x.masked_fill(mask, 0.0).sum(dim=-1)

def get_inputs(): return [torch.randn(4, 8), 2.5, True, torch.rand(4, 8) < 0.5]
""",
    "nested inputs and keywords": """
class Model(nn.Module):
    def forward(self, pair, *, extra):
        a, b = pair
        return a @ b + extra["bias"]

def get_inputs(): return [(torch.randn(4, 8), torch.randn(8, 3))]
def get_input_kwargs(): return {"extra": {"bias": torch.randn(3)}}
""",
    "one weight in two places": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.head = nn.Linear(8, 16, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return torch.softmax(self.head(torch.tanh(self.embed(ids))), dim=-1)

def get_inputs(): return [torch.randint(0, 16, (2, 5))]
""",
    "one module called twice": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x):
        return self.norm(self.fc(torch.relu(self.norm(self.fc(x)))))

def get_inputs(): return [torch.randn(4, 8)]
""",
    "tables and constants": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        table = torch.zeros(6, 4)
        table[:, 0::2] = torch.sin(torch.arange(6.0)).unsqueeze(1)
        self.register_buffer("table", table)
        self.steps = torch.tensor([1.0, 2.0, 3.0, 4.0])
        self.scale = nn.Parameter(torch.full((4,), 0.5))

    def forward(self, x):
        mask = torch.tril(torch.ones(6, 6)).bool()
        x = (x + self.table) * self.steps * self.scale
        scores = x @ x.transpose(-2, -1)
        return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1) @ x

def get_inputs(): return [torch.randn(2, 6, 4)]
""",
    "a result that nobody reads": """
class Model(nn.Module):
    def forward(self, x):
        torch.exp(x)
        return torch.tanh(x) + 1

def get_inputs(): return [torch.randn(4, 8)]
""",
    "strides that are kept": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)

    def forward(self, x):
        x = self.conv(x.to(memory_format=torch.channels_last))
        x = x.permute(0, 2, 3, 1).relu()
        return x.transpose(1, 2).exp(), x[:, ::2].cos(), x[0].expand(2, -1, -1, -1).sin()

def get_inputs(): return [torch.randn(2, 3, 8, 8)]
""",
    "half precision": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8, dtype=torch.bfloat16)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        return self.norm(self.fc(x).float()).to(torch.float16)

def get_inputs(): return [torch.randn(4, 8, dtype=torch.bfloat16)]
""",
    "recurrent layers": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 6, num_layers=2, bidirectional=True)
        self.gru = nn.GRU(12, 5, batch_first=True)

    def forward(self, x):
        out, (h, c) = self.lstm(x)
        out, last = self.gru(out)
        return out, last, h.sum(), c

def get_inputs(): return [torch.randn(3, 4, 8)]
""",
    "attention of nn.TransformerEncoderLayer": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, x):
        return self.encoder(x)

def get_inputs(): return [torch.randn(2, 5, 16)]
""",
    "values that decide": """
class Model(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x.exp()
        return x.sin()

def get_inputs(): return [torch.rand(4, 8)]
""",
    "a state that is replaced": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(12, 8)
        self.hidden = torch.randn(4, 8)

    def forward(self, x):
        self.hidden = torch.tanh(self.cell(torch.cat((x, self.hidden), dim=1)))
        return self.hidden * 2

def get_inputs(): return [torch.randn(4, 4)]
""",
    "nothing computed": """
class Model(nn.Module):
    def forward(self, x, y):
        return y, None

def get_inputs(): return [torch.rand(4, 8), torch.rand(4, 8)]
""",
    "the input given back": """
class Model(nn.Module):
    def forward(self, x, y):
        return x, y.exp().view(8, 4), y.exp()

def get_inputs(): return [torch.rand(4, 8), torch.rand(4, 8)]
""",
}  # fmt: skip


def runnable(directory: Path) -> list[Path]:
    """Every file of a decomposition that tests itself."""
    files = [file for file in directory.rglob("*.py") if file.parent != directory]
    return [file for file in files if file.name != "checks.py"]


def output_of(file: Path) -> str:
    """What a file prints when it is run by itself; of a failure the last line of its traceback."""
    import contextlib
    import io

    for name in [n for n in sys.modules if n == "children" or n.startswith("children.")]:
        del sys.modules[name]
    printed = io.StringIO()
    sys.path.insert(0, str(file.parent))
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(file), run_name="__main__")
    except AssertionError as error:
        return f"AssertionError: {error}"
    finally:
        sys.path.pop(0)
    return printed.getvalue().strip()
