"""The public functions: what `import kdrun` gives, and how they take their arguments."""

import doctest
import inspect
import operator
import subprocess
import sys
from pathlib import Path

import pytest

import kdrun
from runner.batch import local_execution
from runner.config import load_settings

SAMPLE = Path(__file__).parents[2] / "data/samples/level1/silu.py"

SIGNATURES = {
    "decompose": "(model: 'nn.Module | str | Path', args: 'tuple[Any, ...]' = (), "
    "kwargs: 'Mapping[str, Any] | None' = None, *, name: 'str | None' = None, "
    "output: 'str | Path' = 'output', mode: \"Literal['eval', 'train']\" = 'eval', "
    "keep_values: 'bool' = False) -> 'Parts'",
    "open": "(directory: 'str | Path') -> 'Parts'",
    "verify": "(directory: 'str | Path') -> 'PartsVerification'",
    "workloads": "(output: 'str | Path', "
    "level: \"Literal['kernel', 'fusion', 'layer', 'model']\" = 'kernel') -> 'Catalogue'",
    "Parts.compose": "(self, replace: 'Mapping[str, type[nn.Module]] | None' = None) "
    "-> 'PartsModel'",
    "Parts.__getitem__": "(self, name: 'str') -> 'PartsComponent'",
    "PartsComponent.inputs": "(self, instance: 'str | None' = None, *, real: 'bool' = False) "
    "-> 'list[Any]'",
    "PartsComponent.build": "(self, instance: 'str | None' = None) -> 'nn.Module'",
}
"""Programs of others depend on these: add arguments at the end, with defaults; change no other."""


@pytest.mark.parametrize("path", SIGNATURES)
def test_a_public_function_keeps_its_arguments(path: str) -> None:
    function = operator.attrgetter(path)(kdrun)
    assert str(inspect.signature(function)) == SIGNATURES[path]


def test_every_public_name_exists_and_no_other() -> None:
    assert [name for name in kdrun.__all__ if not hasattr(kdrun, name)] == []
    assert dir(kdrun) == sorted(kdrun.__all__)
    with pytest.raises(AttributeError, match="module 'kdrun' has no attribute 'decomposed'"):
        _ = kdrun.decomposed


def test_importing_it_takes_under_50_ms() -> None:
    program = (
        "import time; begin = time.process_time(); import kdrun, sys; "
        "print(time.process_time() - begin, 'torch' in sys.modules)"
    )
    outputs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
        for _ in range(3)
    ]
    seconds, loads_torch = min(output.split() for output in outputs)
    assert float(seconds) < 0.05
    assert loads_torch == "False"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = load_settings({"output": tmp_path_factory.mktemp("output")})
    return local_execution.decompose(SAMPLE, settings).directory


@pytest.mark.parametrize("path", [path for path in SIGNATURES if "__" not in path])
def test_the_example_in_a_docstring_runs(path: str, sample: Path, tmp_path: Path) -> None:
    function = operator.attrgetter(path)(kdrun)
    examples = doctest.DocTestFinder().find(
        function, path, globs={"sample": sample, "folder": tmp_path}
    )
    assert sum(len(example.examples) for example in examples) >= 2
    runner = doctest.DocTestRunner()
    for example in examples:
        runner.run(example)
    assert runner.summarize().failed == 0


def test_the_command_line_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "kdrun", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert kdrun.__version__ in done.stdout
