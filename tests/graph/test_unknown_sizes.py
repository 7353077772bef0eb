"""Forwards in which values decide sizes, or what is called: a second trace knows the values."""

from programs import Write

from runner.graph.tracing.capture import capture

ROUTED = """
counts = torch.full((4,), 2, device=x.device)
try:
    parts = x.split(counts.tolist())
except Exception:
    parts = [x]
return torch.cat([part * (n + 2) for n, part in enumerate(parts)])
"""

CACHED = """
from functools import lru_cache

TABLES = {"shift": torch.zeros(8)}

@lru_cache
def table(n):
    return torch.arange(n) * 0.5

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        return self.up(self.norm(x)) if x.shape[0] < int(table(200).max()) else x
"""


def test_no_except_of_the_author_catches_that_a_size_is_unknown(write: Write) -> None:
    graph = capture(write(ROUTED, inputs="torch.randn(8, 4)"))
    assert graph.capture == "fake"
    assert [op.args[1] for op in graph.operations if op.name == "mul"] == [2, 3, 4, 5]


def test_no_trace_reads_what_the_one_before_left_in_a_cache(write: Write) -> None:
    loop = "for layer in self.layers:\n    x = layer(x)\nreturn x + table(4096).view(512, 8)[:4]"
    layers = "self.layers = nn.ModuleList([Layer() for _ in range(8)])"
    graph = capture(write(loop, init=layers, classes=CACHED))
    assert graph.capture == "fake"
    assert sum(op.name == "linear" for op in graph.operations) == 8


def test_tables_that_were_made_with_file_or_model_stay_for_the_next_trace(write: Write) -> None:
    init = (
        "TABLES['scale'] = torch.arange(8) * 0.5\n"
        "self.layers = nn.ModuleList([Layer() for _ in range(8)])"
    )
    loop = (
        "for layer in self.layers:\n    x = layer(x)\n"
        "return x * TABLES['scale'] + len(TABLES['shift'])"
    )
    graph = capture(write(loop, init=init, classes=CACHED))
    assert graph.capture == "fake"
    assert sum(op.name == "linear" for op in graph.operations) == 8
