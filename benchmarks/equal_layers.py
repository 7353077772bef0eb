"""How the engine's time grows with equal layers: the same transformer with 8 and with 80 of them.

    python benchmarks/equal_layers.py [--layers N]...

Capture to files on fake tensors, in one process, without verification. The goal is that 80 layers
take at most 3 times the processor time of 8.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # read by torch as it is imported
    os.environ[threads] = "1"

GOAL = 3.0
MODEL = """\
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(x.transpose(1, 2).reshape(batch, length, width))


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, 4 * width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention, self.mlp = Attention(width, heads), MLP(width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embed = nn.Embedding(32000, 4096)
        self.blocks = nn.ModuleList(Block(4096, 32) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(4096), nn.Linear(4096, 32000, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def get_inputs():
    return [torch.randint(0, 32000, (1, 128))]


def get_init_inputs():
    return [{layers}]
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Processor time of the engine for equal layers.")
    parser.add_argument("--layers", type=int, action="append", default=[], metavar="N")
    counts = parser.parse_args().layers or [8, 80]
    with tempfile.TemporaryDirectory() as room:
        measure(Path(room, "first"), 2)  # what is imported and filled once
        print(f"{'layers':>6} {'capture':>8} {'files':>8} {'cpu s':>8} {'ratio':>6}")
        first: float | None = None
        for layers in counts:
            capture, files = measure(Path(room, str(layers)), layers)
            total = capture + files
            first = first or total
            print(f"{layers:>6} {capture:>8.2f} {files:>8.2f} {total:>8.2f} {total / first:>6.2f}")
    if len(counts) > 1:
        print(f"goal: {GOAL}")


def measure(room: Path, layers: int) -> tuple[float, float]:
    """Processor seconds of capture, and of everything after it."""
    from runner.emit.decomposition import capture_graph, write_decomposition
    from runner.problems import read_problem

    file = room / "level3" / "deep.py"
    file.parent.mkdir(parents=True)
    file.write_text(MODEL.replace("{layers}", str(layers)), encoding="utf-8")
    problem = read_problem(file)
    started = time.process_time()
    graph = capture_graph(problem)
    captured = time.process_time()
    write_decomposition(problem, graph, room / "out")
    return captured - started, time.process_time() - captured


if __name__ == "__main__":
    main()
