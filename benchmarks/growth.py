"""How the engine's time grows with a model: the same block 25, 250 and 2,500 times.

    python benchmarks/growth.py [--kernels N]...

Capture to files, in one process; a block is four kernels. Near linear is the goal: the last column,
milliseconds a kernel, should stay what it is.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # read by torch as it is imported
    os.environ[threads] = "1"

MODEL = """\
import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.linear = nn.Linear(16, 16)

    def forward(self, x):
        return x + torch.relu(self.linear(self.norm(x)))


class Model(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def get_inputs():
    return [torch.randn(2, 8, 16)]


def get_init_inputs():
    return [{blocks}]
"""
KERNELS_A_BLOCK = 4


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds of the engine for ever deeper models.")
    parser.add_argument("--kernels", type=int, action="append", default=[], metavar="N")
    sizes = parser.parse_args().kernels or [100, 1_000, 10_000]
    print(f"{'kernels':>8} {'wall s':>8} {'cpu s':>8} {'ms each':>8}")
    with tempfile.TemporaryDirectory() as room:
        seconds(Path(room), KERNELS_A_BLOCK)  # what is imported and filled once
        for kernels in sizes:
            wall, cpu, count = seconds(Path(room), kernels)
            print(f"{count:>8} {wall:>8.2f} {cpu:>8.2f} {1000 * cpu / count:>8.2f}", flush=True)


def seconds(room: Path, kernels: int) -> tuple[float, float, int]:
    """Wall clock, processor, and how many kernels there really were."""
    from runner.emit import decompose
    from runner.problems import read_problem

    blocks = max(1, kernels // KERNELS_A_BLOCK)
    folder = room / str(blocks) / "level3"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "deep.py"
    file.write_text(MODEL.replace("{blocks}", str(blocks)), encoding="utf-8")
    wall, cpu = time.perf_counter(), time.process_time()
    tree = decompose(read_problem(file), room / str(blocks) / "out")
    return (
        time.perf_counter() - wall,
        time.process_time() - cpu,
        tree.metadata.kernel_instances,
    )


if __name__ == "__main__":
    main()
