"""`kdrun decompose package.module:Class`: from a checkout of many files to a file on its own."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from commands import KDRUN

from runner.batch.child.child_process import close_fork_server
from runner.tree.document import Tree
from tests.cli.conftest import Kdrun

pytestmark = pytest.mark.long

PACKAGE = {
    "__init__.py": "",
    "config.py": """\
from dataclasses import dataclass


@dataclass
class Config:
    width: int = 16
    depth: int = 2
""",
    "output.py": """\
from dataclasses import dataclass

import torch


@dataclass
class Output:
    hidden: torch.Tensor
    pooled: torch.Tensor | None = None


class Cache:
    def __init__(self):
        self.layers = []

    def append(self, key):
        self.layers.append(key)
""",
    "layers/__init__.py": "from .block import Block\n",
    "layers/block.py": """\
from torch import nn

from ..config import Config
from .gate import gated


class Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.norm = nn.LayerNorm(config.width)
        self.up = nn.Linear(config.width, 4 * config.width)
        self.gate = nn.Linear(config.width, 4 * config.width)
        self.down = nn.Linear(4 * config.width, config.width)

    def forward(self, hidden, cache=None):
        normed = self.norm(hidden)
        if cache is not None:
            cache.append(normed)
        return hidden + self.down(gated(self.up(normed), self.gate(normed)))
""",
    "layers/gate.py": """\
import torch.nn.functional as F


def gated(up, gate):
    return F.silu(gate) * up
""",
    "model.py": """\
import torch
from torch import nn

from .config import Config
from .layers import Block
from .output import Cache, Output


class Encoder(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.embed = nn.Embedding(50, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.depth))

    def forward(self, ids, mask=None, use_cache=False):
        hidden = self.embed(ids)
        cache = Cache() if use_cache else None
        for block in self.blocks:
            hidden = block(hidden, cache)
        if mask is not None:
            hidden = hidden * mask.unsqueeze(-1)
        return (Output(hidden), cache) if use_cache else Output(hidden)


def encoder():
    return Encoder(Config(depth=1)), {"ids": torch.randint(0, 50, (2, 5))}

""",
}
INIT = '{"config": {"encoders.config:Config": {"width": 8}}}'
INPUTS = "ids=int64[2,5]<50, mask=float32[2,5]=1, use_cache=true"


@dataclass(frozen=True)
class Checkout:
    """A folder with the package in it, and a decomposition of a model of it."""

    place: Path
    done: subprocess.CompletedProcess[str]

    @property
    def directory(self) -> Path:
        return self.place / "output/custom/Encoder"


def kdrun_of_its_own(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([KDRUN, *arguments], cwd=place, capture_output=True, text=True)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    place = tmp_path_factory.mktemp("checkout")
    for name, text in PACKAGE.items():
        path = place / "encoders" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    target = "encoders.model:Encoder"
    command = ("decompose", target, "--init", INIT, "--inputs", INPUTS)
    return Checkout(place, kdrun_of_its_own(place, *command))


@pytest.fixture(scope="module")
def fork_server_of_the_folder() -> Iterator[None]:
    """A fork server finds packages in the folder where it was started."""
    close_fork_server()
    yield
    close_fork_server()


@pytest.fixture
def there(
    checkout: Checkout,
    fork_server_of_the_folder: None,
    kdrun: Kdrun,
    monkeypatch: pytest.MonkeyPatch,
) -> Kdrun:
    """The command, run in this process and in the folder that holds the package."""
    monkeypatch.chdir(checkout.place)
    return kdrun


def test_a_model_of_many_files_is_taken_apart_and_proven(checkout: Checkout) -> None:
    assert checkout.done.returncode == 0, checkout.done
    assert checkout.done.stdout.startswith("passed  custom/Encoder\n")
    assert "the kernels put together equal the original to the last bit" in checkout.done.stdout


def test_the_whole_model_is_one_file_that_imports_torch_alone(checkout: Checkout) -> None:
    tree = Tree.read(checkout.directory)
    assert tree.root.level == "model"
    text = (checkout.directory / tree.root.path).read_text()
    imports = re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)
    assert set(imports) == {"torch"}
    elsewhere = checkout.place / "elsewhere"
    elsewhere.mkdir()
    alone = shutil.copy(checkout.directory / tree.root.path, elsewhere)
    ran = subprocess.run([sys.executable, alone], cwd=elsewhere, capture_output=True, text=True)
    assert ran.stdout == "PASS\n"


def test_what_the_model_returns_beside_its_tensor_is_returned_too(checkout: Checkout) -> None:
    """A dataclass with a None in it, and an object that holds a list of tensors."""
    shapes = Tree.read(checkout.directory).root.output_shapes
    assert list(shapes.values()) == [[2, 5, 8]] * 3


def test_a_component_says_where_in_the_package_it_comes_from(checkout: Checkout) -> None:
    (block,) = checkout.directory.glob("level_2_layer/*.py")
    assert "Source:      encoders/layers/block.py, line 19 (blocks.0), " in block.read_text()


def test_weights_keep_the_names_that_the_class_gives_them(checkout: Checkout) -> None:
    original = set(Tree.read(checkout.directory).root.weight_map.values())
    assert {"embed.weight", "blocks.0.norm.bias", "blocks.1.down.weight"} <= original


def test_the_source_that_was_taken_apart_is_told(checkout: Checkout) -> None:
    packages = Tree.read(checkout.directory).metadata.packages
    assert re.fullmatch(r"sha256 [0-9a-f]{12} of 7 files", packages["encoders"])
    original = (checkout.directory / "original.py").read_text()
    assert original.startswith(f'"""encoders.model:Encoder of encoders {packages["encoders"]}, as')


def test_it_is_verified_again_where_the_package_is(there: Kdrun) -> None:
    again = there("verify", "output/custom/Encoder")
    assert (again.code, again.err) == (0, "")
    assert "taken apart with" not in again.out


def test_a_class_that_is_built_from_something_is_told_with_an_example(
    there: Kdrun, tmp_path: Path
) -> None:
    output = ("--output", str(tmp_path))
    done = there("decompose", "torch.nn:Linear", "--inputs", "float32[8,4]", *output)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "kdrun: torch.nn:Linear: Linear.__init__() missing 2 required positional arguments: "
        "'in_features' and 'out_features'; "
        """give --init '{"in_features": ..., "out_features": ...}'\n"""
    )
    assert not list(tmp_path.rglob("*.py"))


def test_a_package_that_is_missing_or_another_is_told_in_one_line(
    checkout: Checkout, tmp_path: Path
) -> None:
    shutil.copytree(checkout.directory, tmp_path / "Encoder")
    without = kdrun_of_its_own(tmp_path, "verify", "Encoder")
    assert without.returncode == 1
    first, *_ = without.stdout.splitlines()
    assert first == (
        "error  Encoder: original.py: needs the module 'encoders', which is not installed "
        "(line 4); run in the folder that holds encoders, or name that folder in PYTHONPATH"
    )
    shutil.copytree(checkout.place / "encoders", tmp_path / "encoders")
    with (tmp_path / "encoders/layers/gate.py").open("a") as file:
        file.write("\n\nunused = 1\n")
    other = kdrun_of_its_own(tmp_path, "verify", "Encoder")
    assert other.returncode == 0
    assert re.search(r"mind: taken apart with encoders sha256 .*; here it is sha256", other.stdout)


def test_a_name_that_its_module_does_not_have_is_wrong_usage_and_leaves_nothing(
    checkout: Checkout, there: Kdrun
) -> None:
    wrong = there("decompose", "encoders.model:Encodr", "--inputs", INPUTS)
    assert (wrong.code, wrong.out) == (2, "")
    said = "kdrun: encoders.model:Encodr: encoders.model has no Encodr; is it Encoder?\n"
    assert wrong.err == said
    assert not [path for path in (checkout.place / "output").rglob("*") if "Encodr" in path.name]


def test_the_brief_is_about_such_a_model_too(there: Kdrun) -> None:
    told = there("prompt", "encoders.model:encoder")
    assert told.code == 0, told.err
    assert "from encoders.model import encoder\n" in told.out
    assert "blocks.*.up" in told.out


def test_a_partial_without_its_arguments_is_an_error_and_no_crash(
    checkout: Checkout, there: Kdrun
) -> None:
    (checkout.place / "partials.py").write_text(
        "import functools\nfrom torch import nn\nPart = functools.partial(nn.Linear, 4)\n"
    )
    done = there("decompose", "partials:Part", "--inputs", "float32[2,4]")
    assert done.code == 1
    assert done.out.startswith("error  custom/Part: TypeError: Linear.__init__() missing 1 ")
