"""Running a problem's own code, and what its author reads where it fails."""

import dataclasses
import importlib.metadata
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from runner.errors import ProblemError
from runner.problems import (
    LoadedProblem,
    author_code,
    check_outputs,
    load_problem,
    read_problem,
    seed,
)

Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def no_modules_left() -> Iterator[None]:
    yield
    for name in [n for n in sys.modules if n.startswith("problem_")]:
        del sys.modules[name]


def load(path: Path) -> LoadedProblem:
    return load_problem(read_problem(path))


def run(path: Path) -> list[torch.Tensor]:
    """Everything that a problem's child does with it, once."""
    loaded = load(path)
    model = loaded.build()
    args, kwargs = loaded.get_inputs()
    with author_code(loaded.problem):
        outputs = model(*args, **kwargs)
    return check_outputs(loaded.problem, outputs)


def complaint(path: Path) -> str:
    with pytest.raises(ProblemError) as caught:
        run(path)
    text = str(caught.value)
    line = re.search(r"\(line (\d+)", text)
    assert caught.value.line == (int(line[1]) if line else None)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


def test_a_whole_problem_runs(write: Write) -> None:
    (output,) = run(write())
    assert output.shape == (2, 3)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "self.factor = factor",
            "raise ValueError('no such factor')",
            "ValueError: no such factor (line 10, in __init__)",
        ),
        (
            "x * self.factor",
            "x.view(7)",
            "RuntimeError: shape '[7]' is invalid for input of size 6 (line 13, in forward)",
        ),
        (
            "return x * self.factor",
            "assert x.dim() == 3; return x",
            "AssertionError: assert x.dim() == 3; return x (line 13, in forward)",
        ),
        (
            "return x * self.factor",
            "raise KeyError from None",
            "KeyError (line 13, in forward)",
        ),
        (
            "[torch.randn(2, 3)]",
            "{'x': torch.randn(2, 3)}",
            "get_inputs() returned a dict, not a list; return a list, in forward()'s order",
        ),
        (
            "[torch.randn(2, 3)]",
            "torch.randn(2, 3)",
            "get_inputs() returned a Tensor, not a list; return a list, in forward()'s order",
        ),
        (
            "return [torch.randn(2, 3)]",
            "x = [torch.randn(2, 3)]",
            "get_inputs() returned None, not a list; return a list, in forward()'s order",
        ),
        (
            "[torch.randn(2, 3)]",
            "[torch.randn(2, unknown)]",
            "NameError: name 'unknown' is not defined (line 17, in get_inputs)",
        ),
        (
            "[2.0]",
            "2.0",
            "get_init_inputs() returned a float, not a list; return Model's arguments as a list, "
            "or as a dict by name",
        ),
        (
            "return x * self.factor",
            "return None",
            "forward() returned None, not a tensor; return a tensor, or a tuple of tensors",
        ),
        (
            "return x * self.factor",
            "return x.shape[0], {'scale': 2.0}",
            "forward() returned a tuple with no tensor in it; return a tensor, or a tuple of "
            "tensors",
        ),
        (
            "class Model(nn.Module):",
            "class Model:",
            "Model is not an nn.Module; write `class Model(nn.Module):`",
        ),
        (
            "def get_inputs():\n    return [torch.randn(2, 3)]",
            "get_inputs = [torch.randn(2, 3)]",
            "get_inputs is not a function",
        ),
        (
            "import torch\n",
            "import no_such_thing\nimport torch\n",
            "needs the module 'no_such_thing', which is not installed (line 3); "
            "pip install no_such_thing",
        ),
        (
            "import torch\n",
            "import torch.no_such_part\nimport torch\n",
            f"needs 'torch.no_such_part', which torch {torch.__version__} does not have (line 3)",
        ),
        (
            "import torch.nn as nn\n",
            "import torch.nn as nn\nraise SystemExit(3)\n",
            "SystemExit: 3 (line 5)",
        ),
    ],
)
def test_what_the_author_got_wrong_is_told_in_one_line(
    write: Write, old: str, new: str, expected: str
) -> None:
    assert complaint(write(old, new)) == expected


def test_a_package_of_another_name_than_its_module_is_named(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.delitem(sys.modules, "sklearn")
    finder = type("Hidden", (), {"find_spec": staticmethod(_hide("sklearn"))})
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    path = write("import torch\n", "import sklearn.svm\nimport torch\n")
    assert complaint(path).endswith("pip install scikit-learn")


def _hide(package: str) -> Callable[..., None]:
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    return find_spec


def test_a_module_that_lies_beside_the_file_is_to_be_put_into_it(write: Write) -> None:
    path = write("import torch\n", "from my_layers import Norm\nimport torch\n")
    path.with_name("my_layers.py").write_text("Norm = None\n")
    assert complaint(path) == (
        "imports my_layers.py, which lies beside it (line 3); "
        "a problem is one file: put what it uses of my_layers into it"
    )


def test_the_authors_line_is_named_though_torch_raised(write: Write) -> None:
    path = write("x * self.factor", "nn.functional.linear(x,\n            torch.zeros(5, 4))")
    assert complaint(path).endswith("(line 13, in forward)")


def test_an_error_in_a_lambda_is_told_by_the_function_around_it(write: Write) -> None:
    path = write("x * self.factor", "[(lambda v: v / nothing)(x) for _ in range(1)][0]")
    assert complaint(path) == "NameError: name 'nothing' is not defined (line 13, in forward)"


def test_a_very_long_message_is_cut(write: Write) -> None:
    path = write("return x * self.factor", "raise ValueError('long ' * 1000)")
    assert len(complaint(path)) < 400


def test_no_memory_is_not_the_authors_fault(write: Write) -> None:
    path = write("x * self.factor", "x.new_empty(1 << 60)")
    with pytest.raises(MemoryError):
        run(path)


def test_a_file_that_changed_after_selection_is_refused(write: Write) -> None:
    problem = read_problem(write())
    write("2.0", "3.0")
    with pytest.raises(ProblemError, match="changed after it was selected; run again"):
        load_problem(problem)


def test_arguments_by_name_build_the_model(write: Write) -> None:
    loaded = load(write("[2.0]", "{'factor': 2.0}"))
    assert (loaded.init_args, loaded.init_kwargs) == ([], {"factor": 2.0})
    assert loaded.build().factor == 2.0


def test_a_list_in_the_arguments_is_one_argument(write: Write) -> None:
    loaded = load(write("[2.0]", "[[2.0], {}]"))
    assert loaded.init_args == [[2.0], {}]


def test_keyword_inputs_come_from_a_function_of_their_own(write: Write) -> None:
    path = write(
        "def get_init_inputs",
        "def get_input_kwargs():\n    return {'x': 1}\n\n\ndef get_init_inputs",
    )
    assert load(path).get_inputs()[1] == {"x": 1}
    path = write(
        "def get_init_inputs", "def get_input_kwargs():\n    return [1]\n\n\ndef get_init_inputs"
    )
    with pytest.raises(ProblemError, match=r"get_input_kwargs\(\) returned a list, not a dict"):
        load(path).get_inputs()


def test_get_inputs_may_have_arguments_with_defaults(write: Write) -> None:
    path = write("def get_inputs():", "def get_inputs(device='cpu', dtype=torch.float32):")
    assert run(path)[0].device.type == "cpu"


def test_outputs_are_found_in_nested_containers(write: Write) -> None:
    path = write("return x * self.factor", "return {'a': [x, 1], 'b': (None, x + 1)}")
    assert len(run(path)) == 2


def test_the_same_seed_gives_the_same_model_and_inputs(write: Write) -> None:
    path = write(
        "[torch.randn(2, 3)]", "[torch.randn(2, 3) * random.random() * numpy.random.rand()]"
    )
    path.write_text(path.read_text().replace("import torch\n", "import random, numpy, torch\n", 1))
    pytest.importorskip("numpy")
    loaded = load(path)
    values = []
    for _ in range(2):
        seed(5)
        values.append(loaded.get_inputs()[0][0])
    assert torch.equal(*values)
    seed(6)
    assert not torch.equal(values[0], loaded.get_inputs()[0][0])


def test_seeding_seeds_pythons_own_random() -> None:
    seed(1)
    first = random.random()
    seed(1)
    assert random.random() == first


def test_a_file_loads_on_fake_tensors(write: Write) -> None:
    path = write("torch.randn(2, 3)", "torch.randn(1 << 20, 1 << 20)")
    with FakeTensorMode():
        (x,), _ = load(path).get_inputs()
    assert isinstance(x, FakeTensor)


def test_dataclasses_and_pickles_of_the_file_find_its_module(write: Write) -> None:
    path = write(
        "class Model",
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n\n"
        "@dataclass(slots=True)\nclass Sizes:\n    width: int = 3\n\n\nclass Model",
    )
    text = path.read_text().replace("from __future__ import annotations\n", "", 1)
    head, rest = text.split("\n\n", 1)
    path.write_text(f"{head}\n\nfrom __future__ import annotations\n\n{rest}")
    module = load(path).module
    assert dataclasses.asdict(module.Sizes()) == {"width": 3}
    assert sys.modules[module.__name__] is module


def test_two_loads_in_one_process_are_two_modules(write: Write) -> None:
    path = write()
    assert load(path).module is not load(path).module


def test_nothing_is_written_beside_the_file(write: Write) -> None:
    path = write()
    run(path)
    assert [p.name for p in path.parent.iterdir()] == ["doubling.py"]


def test_a_package_is_not_found_where_only_a_file_beside_the_problem_has_its_name(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As libraries ask for an optional package, in any of the usual ways."""
    path = write(
        "import torch\n",
        "import importlib.util, pkgutil\n"
        "found = importlib.util.find_spec('my_layers') or pkgutil.find_loader('my_layers')\n"
        "try:\n    import my_layers as found\nexcept ModuleNotFoundError:\n    pass\n"
        "import torch\n",
    )
    path.with_name("my_layers.py").touch()
    monkeypatch.syspath_prepend(path.parent)
    assert load(path).module.found is None
    assert importlib.metadata.version("torch")  # it asks the same finders
