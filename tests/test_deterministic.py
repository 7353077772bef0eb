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
torch.set_num_threads(int(sys.argv[2]))
from runner.emit import decompose
from runner.problems import read_problem
for problem in map(Path, sys.argv[3:]):
    decompose(read_problem(problem), Path(sys.argv[1], problem.stem))
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


def files_of(out: Path, problems: list[Path], hash_seed: str, threads: int) -> dict[str, bytes]:
    """Every emitted file, from a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(out), str(threads), *map(str, problems)],
        check=True,
        env=environment,
    )
    return {f.relative_to(out).as_posix(): f.read_bytes() for f in out.rglob("*") if f.is_file()}


def test_processes_hash_seeds_and_threads_change_no_byte(tmp_path: Path) -> None:
    folder = tmp_path / "level3"
    folder.mkdir()
    steers = {"plain": "pass", "steered": "x = x[mask.any(1)] if x.sum() > -1e9 else x"}
    for name, steer in steers.items():
        (folder / f"{name}.py").write_text(PROBLEM % {"steer": steer}, encoding="utf-8")
    problems = sorted(folder.iterdir())
    first = files_of(tmp_path / "first", problems, "0", 1)
    second = files_of(tmp_path / "second", problems, "4242", 2)
    assert len(first) > 40
    assert first == second
