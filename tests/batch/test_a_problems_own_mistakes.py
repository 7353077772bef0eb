"""A problem that fails on its own inputs, and files that lie beside a problem."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.batch import local_execution
from runner.config import Settings

pytestmark = pytest.mark.usefixtures("working_folder")

LOOKUP = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 8)
        self.linear = nn.Linear(8, 4)

    def forward(self, ids, scale=1.0):
        return torch.relu(self.linear(self.table(ids))) * scale


def get_inputs():
    return [torch.randint(0, 100, (2, 5))]


def get_input_kwargs():
    return {"scale": 2.0}


def get_init_inputs():
    return []
"""
BESIDE = LOOKUP.replace("from torch import nn\n", "from torch import nn\n\nfrom blocks import nn\n")
RESTLESS = LOOKUP.replace("0, 100", "0, 10").replace(
    "import torch", "import random\n\nimport torch", 1
)
RESTLESS = RESTLESS.replace("* scale", "* random.Random().random()")
Decomposed = Callable[..., str]


@pytest.fixture(scope="module")
def working_folder(tmp_path_factory: pytest.TempPathFactory) -> object:
    """A folder of a user's, where the file's fork server starts; some names there are Python's."""
    from runner.batch.child import child_process

    folder = tmp_path_factory.mktemp("work")
    for name in ("random", "torch", "signal"):
        (folder / f"{name}.py").write_text("raise RuntimeError('a problem, not the module')\n")
    (folder / "blocks.py").write_text("from torch import nn\n")
    (folder / "zoo").mkdir()
    (folder / "zoo/__init__.py").write_text("from torch import nn\n")
    child_process.close_fork_server()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder
    child_process.close_fork_server()


@pytest.fixture
def decomposed(tmp_path: Path) -> Decomposed:
    """Take apart a problem in the working folder, and return what is printed."""

    def decompose(name: str, text: str) -> str:
        Path(f"{name}.py").write_text(text)
        result = local_execution.decompose(Path(f"{name}.py"), Settings(output=tmp_path)).result
        return f"{result.status}: {result.reason}" if result.reason else result.status

    return decompose


@pytest.mark.long
def test_inputs_that_the_model_refuses_are_an_error_of_the_problem(
    decomposed: Decomposed, tmp_path: Path
) -> None:
    said = (
        "forward() fails on its own inputs (int64[2, 5] from 3 to 97, scale=2.0; seed 0): "
        "IndexError: index out of range in self (line 12, in forward)"
    )
    assert decomposed("lookup", LOOKUP) == f"error: {said}"

    again = local_execution.verify(tmp_path / "custom/lookup", Settings()).answer
    assert again.status == "failed"
    assert any(
        re.search(r"original.py: forward: .*; inputs of seed \d+: int64\[2, 5\] from", each)
        for each in again.findings
    )


def test_inputs_of_a_later_seed_are_the_problems_too(decomposed: Decomposed) -> None:
    said = decomposed("later", LOOKUP.replace("0, 100", "0, 12"))
    assert said.startswith("error: forward() fails on its own inputs (int64[2, 5] from 0 to 11")
    assert "; seed 1): IndexError" in said


def test_an_original_that_differs_from_itself_is_told_as_that(decomposed: Decomposed) -> None:
    said = decomposed("restless", RESTLESS)
    assert said.startswith(
        "error: run twice with the same weights, inputs and random seed, forward() gives two "
        "results: output differs by "
    )
    assert said.endswith("make it repeatable: nothing can be shown to be equal to it")


@pytest.mark.parametrize("generator", ["random.random()", "numpy.random.rand()"])
def test_random_numbers_that_torch_does_not_draw_are_told_as_that(
    decomposed: Decomposed, generator: str
) -> None:
    module = generator.partition(".")[0]
    text = LOOKUP.replace("0, 100", "0, 10").replace("* scale", f"* {generator}")
    said = decomposed("drawing", f"import {module}\n{text}")
    assert said.startswith("error: forward() draws random numbers that torch's seed does not set: ")


def test_a_file_beside_the_problem_is_not_imported(decomposed: Decomposed) -> None:
    assert decomposed("my_model", BESIDE) == (
        "error: imports blocks.py, which lies beside it (line 4); "
        "a problem is one file: put what it uses of blocks into it"
    )


def test_nor_is_it_while_the_model_runs(decomposed: Decomposed) -> None:
    later = LOOKUP.replace(
        "        return torch.relu", "        import blocks\n        return torch.relu"
    )
    assert "imports blocks.py, which lies beside it (line 12)" in decomposed("later_on", later)


def test_a_file_that_is_read_beside_the_problem_is_told(decomposed: Decomposed) -> None:
    Path("sizes.txt").write_text("10")
    read = "int((Path(__file__).parent / 'sizes.txt').read_text())"
    said = decomposed("reading", f"from pathlib import Path\n{LOOKUP.replace('100', read)}")
    assert said.startswith(
        "error: a copy of the file in another folder fails: FileNotFoundError: [Errno 2] No such"
    )
    assert said.endswith("write into the file what it reads from files beside it")


def test_a_folder_beside_it_is_a_package(decomposed: Decomposed) -> None:
    whole = BESIDE.replace("blocks", "zoo").replace("0, 100", "0, 10")
    assert decomposed("with_zoo", whole) == "passed"


def test_a_file_with_the_name_of_an_installed_module_is_in_nobodys_way(
    decomposed: Decomposed,
) -> None:
    whole = LOOKUP.replace("import torch\n", "import random\n\nimport torch\n", 1)
    assert decomposed("numpy", whole.replace("0, 100", "0, 10")) == "passed"
