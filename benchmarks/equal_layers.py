"""How time grows with equal layers: the same transformer with 8 and with 80 of them.

    python benchmarks/equal_layers.py [--layers N]...

`command` is the time from the start of `kdrun decompose FILE --no-verify` to its end, as a user
waits for it. The goal is that 80 layers take at most 3 times the time of 8. `capture` and `files`
are processor seconds in a process that has imported everything: what is captured on fake tensors,
and what is done with it until all files are written. Exit code 1 if the goal is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, action="append", default=[], metavar="N")
    counts = parser.parse_args().layers or [8, 80]
    commands: list[float] = []
    with tempfile.TemporaryDirectory() as room:
        measure_engine(Path(room, "first"), 2)  # what is imported and filled once
        print(f"{'layers':>6} {'command':>8} {'ratio':>6} {'capture':>8} {'files':>8}")
        for layers in counts:
            capture, files = measure_engine(Path(room, str(layers)), layers)
            commands.append(measure_command(Path(room, str(layers)), layers))
            ratio = commands[-1] / commands[0]
            print(f"{layers:>6} {commands[-1]:>8.2f} {ratio:>6.2f} {capture:>8.2f} {files:>8.2f}")
    print(f"goal: {GOAL}")
    return 0 if commands[-1] <= GOAL * commands[0] else 1


def measure_command(room: Path, layers: int) -> float:
    """Return the seconds from the start of the command to its end."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "kdrun", "decompose", str(write_model(room, layers))]
    subprocess.run(  # its exit code is 1, since nothing is verified
        [*command, "--no-verify", "--output", str(room / "out")], stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started


def measure_engine(room: Path, layers: int) -> tuple[float, float]:
    """Return the processor seconds of capture, and of everything after it."""
    from runner.emit.decomposition import capture_graph, write_decomposition
    from runner.problems import read_problem

    problem = read_problem(write_model(room, layers))
    started = time.process_time()
    graph = capture_graph(problem)
    captured = time.process_time()
    write_decomposition(problem, graph, room / "engine")
    return captured - started, time.process_time() - captured


def write_model(room: Path, layers: int) -> Path:
    file = room / "level3" / "deep.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(MODEL.replace("{layers}", str(layers)), encoding="utf-8")
    return file


if __name__ == "__main__":
    sys.exit(main())
