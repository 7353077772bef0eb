"""The same problem gives the same bytes: in every process, under any hash seed and thread count."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

PROGRAM = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(int(sys.argv[3]))
from runner.emit import decompose
from runner.problems import read_problem
decompose(read_problem(Path(sys.argv[1])), Path(sys.argv[2]))
"""

# Layers that repeat, a table, a tied weight, and a value that steers: the concrete trace as well.
PROBLEM = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)
        self.register_buffer("table", torch.arange(12).float()[:, None] * 0.1)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x) + self.table).chunk(3, -1)
        scores = (q @ k.transpose(1, 2)).softmax(-1)
        return x + F.gelu(self.out(scores @ v))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(32, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids, mask):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        %(steer)s
        return {"logits": self.head(x), "chosen": x.mean(1)}


def get_inputs():
    return [torch.randint(0, 50, (2, 12)), torch.rand(2, 12) > 0.5]


def get_init_inputs():
    return []
"""


def files_of(
    folder: Path, problem: Path, name: str, hash_seed: str, threads: int
) -> dict[str, bytes]:
    """Every emitted file, from a process of its own."""
    out = folder / name
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(problem), str(out), str(threads)],
        check=True,
        env=environment,
    )
    return {f.relative_to(out).as_posix(): f.read_bytes() for f in out.rglob("*") if f.is_file()}


def test_processes_hash_seeds_and_threads_change_no_byte(tmp_path: Path) -> None:
    for steer in ("pass", "x = x[mask.any(1)] if x.sum() > -1e9 else x"):
        folder = tmp_path / ("steered" if steer != "pass" else "plain") / "level3"
        folder.mkdir(parents=True)
        problem = folder / "attention.py"
        problem.write_text(PROBLEM % {"steer": steer}, encoding="utf-8")
        first = files_of(folder, problem, "first", "0", 1)
        second = files_of(folder, problem, "second", "4242", 2)
        assert len(first) > 20
        assert first == second
