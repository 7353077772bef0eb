"""`flex_attention` becomes an attention, whatever its functions for scores and mask compute."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from programs import Write

from runner.cli import cli
from runner.tree.document import Tree

IMPORTS = """
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
compiled = torch.compile(flex_attention)
def causal(batch, head, query, key):
    return query >= key
def nearby(batch, head, query, key):
    return (query >= key) & (query - key < 3)
def capped(score, batch, head, query, key):
    return 5 * torch.tanh(score / 5)
"""
FORWARD = """
q, k, v = self.qkv(x).view(2, 16, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
document = (x[..., 0] > 0).cumsum(-1)
def with_bias(score, batch, head, query, key):
    return score + self.slopes[head] * (key - query)
def same_document(batch, head, query, key):
    return document[batch, query] == document[batch, key]
window = create_block_mask(nearby, None, None, 16, 16, device=x.device)
documents = create_block_mask(same_document, 2, None, 16, 16, device=x.device)
return (
    flex_attention(q, k, v),
    flex_attention(q, k, v, block_mask=self.mask),
    compiled(q, k, v, block_mask=window, scale=0.5),
    flex_attention(q, k, v, score_mod=capped, block_mask=self.mask),
    flex_attention(q, k, v, score_mod=with_bias).transpose(1, 2).reshape(2, 16, 32),
    flex_attention(q, k, v, block_mask=documents),
    flex_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
    flex_attention(q, k, v, score_mod=capped, return_lse=True),
)
"""
INIT = """
self.qkv = nn.Linear(32, 96)
self.slopes = nn.Parameter(torch.randn(4))
self.mask = create_block_mask(causal, None, None, 16, 16, device="cpu")
"""
COMPARE = """
import sys
from pathlib import Path
import torch
from torch.nn.attention import flex_attention

flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
torch.compile = lambda function: function  # Compiled, it would have other bits.

def run(path):
    sys.path.insert(0, str(Path(path).parent))
    module = __import__(Path(path).stem)
    model = module.Model()
    torch.manual_seed(0)
    inputs, state = module.get_inputs(), model.state_dict()
    with torch.no_grad():
        for name in sorted(state):
            state[name].copy_(torch.randn(state[name].shape))
        return model(*inputs)

original, composed = map(run, sys.argv[1:])
(*outputs, (output, logarithm)) = original
torch.testing.assert_close((*outputs, output, logarithm), composed, rtol=0, atol=0)
"""


@pytest.mark.long
def test_it_is_an_attention_and_passes(write: Write, tmp_path: Path) -> None:
    problem = write(FORWARD, init=INIT, classes=IMPORTS, inputs="torch.randn(2, 16, 32)")
    directory = tmp_path / "apart" / "custom" / "problem"
    done = run("decompose", problem.path, "--output", tmp_path / "apart")
    assert "to the last bit" in done

    tree = Tree.read(directory)
    kernels = [node.operation for node in tree.nodes.values() if node.level == "kernel"]
    assert kernels.count("scaled_dot_product_attention") == 7
    assert "logsumexp" in kernels  # The last one's scores have two readers.

    # Here torch runs its own implementation.
    command = [sys.executable, "-c", COMPARE, problem.path, directory / tree.root.path]
    compared = subprocess.run(command, capture_output=True, text=True)
    assert compared.returncode == 0, compared.stderr[-2000:]

    run("verify", directory)


def run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)
    assert done.return_value == 0, done.output
    return done.stdout
