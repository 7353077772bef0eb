"""`package.module:Class`: the problem file that is written for it, and what can be wrong there."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from runner.errors import KdrunError, MissingError, ProblemError, UsageError
from runner.problems import (
    author_error,
    check_inputs,
    imported_packages,
    load_problem,
    package_identity,
    read_problem,
)
from runner.problems.package_model import (
    problem_text,
    resolve_problem_file,
    suggest_init,
    write_target_problems,
)
from runner.problems.package_targets import is_target

CONFIG = '{"config": {"zoo.config:NetConfig": {"width": 4}}}'

ZOO = {
    "__init__.py": "from .nets import Net\n",
    "config.py": """\
from dataclasses import dataclass


@dataclass
class NetConfig:
    width: int = 16
    activation: type | None = None
""",
    "nets/__init__.py": "from .net import Net\n",
    "nets/net.py": """\
import torch
from torch import nn

from ..config import NetConfig


class Net(nn.Module):
    def __init__(self, config: NetConfig, layers=1):
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(nn.Linear(config.width, config.width) for _ in range(layers))

    @classmethod
    def of_width(cls, width):
        return cls(NetConfig(width))

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x)
        return x if mask is None else x * mask


def small():
    return Net(NetConfig(4)), {"x": torch.randn(2, 4)}


def tuned():
    return Net(NetConfig(4)), torch.randn(2, 4)


def inputs():
    return [torch.randn(2, 4), torch.ones(2, 4)]


def a_number():
    return 3


def model_and_number():
    return Net(NetConfig(4)), 3


DEPTH = 3
""",
    "broken.py": "import torch\n\nraise RuntimeError('half finished')\n",
    "unmet.py": "import no_such_thing\n",
}


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of several files in the working directory, as a checkout is."""
    for name, text in ZOO.items():
        path = tmp_path / "zoo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "zoo"]:
        del sys.modules[name]


def ran(what: str, init: str | None = None, inputs: str | None = None) -> torch.Tensor:
    """What the model gives on its inputs."""
    loaded = load_problem(read_problem(resolve_problem_file(what, init, inputs, Path("output"))))
    model = loaded.build()
    args, kwargs = loaded.get_inputs()
    check_inputs(loaded.problem, model, args, kwargs)
    result = model(*args, **kwargs)
    assert isinstance(result, torch.Tensor)
    return result


def complaint(what: str, init: str | None = None, inputs: str | None = None) -> str:
    with pytest.raises(KdrunError) as told:
        ran(what, init, inputs)
    text = str(told.value)
    assert "\n" not in text
    return text.removeprefix(str(Path.cwd() / "output/problems/")).partition(": ")[2]


def test_the_file_reads_like_a_problem_that_a_person_wrote(zoo: Path) -> None:
    given = "float32[2,4], mask=float32[2,4]=1"
    text = problem_text("zoo:Net", CONFIG, given)
    head, _, rest = text.partition("\n")
    assert head.startswith('"""zoo:Net of zoo sha256 ')
    assert head.endswith(' of 6 files, as kdrun takes it apart."""')
    assert (
        rest
        == '''
import torch
from torch import nn
from zoo import Net
from zoo.config import NetConfig


class Model(nn.Module):
    """What zoo:Net gives, itself."""

    def __new__(cls):
        return Net(config=NetConfig(width=4))


def get_inputs():
    return [torch.randn(2, 4)]


def get_input_kwargs():
    return {"mask": torch.ones(2, 4)}


def get_init_inputs():
    return []
'''
    )
    assert text == problem_text("zoo:Net", CONFIG, given)


def test_a_class_with_a_configuration_object_runs(zoo: Path) -> None:
    assert ran("zoo:Net", CONFIG, "float32[2,4], mask=float32[2,4]=0").abs().sum() == 0


@pytest.mark.parametrize(
    ("what", "init", "inputs"),
    [
        ("zoo.nets.net:Net", '[{"zoo.config:NetConfig": [4]}, 2]', "x=float32[2,4]"),
        ("zoo:Net", '{"zoo.config:NetConfig": {"width": 4}}', "float32[2,4]"),
        (
            "zoo:Net",
            '{"config": {"zoo.config:NetConfig": [4, {"torch.nn:ReLU": null}]}}',
            "zoo.nets.net:inputs",
        ),
        ("zoo:Net.of_width", "[4]", "float32[2,4]"),
        ("zoo.nets.net:small", None, None),
        ("zoo.nets.net:tuned", None, None),
        ("torch.nn:Linear", "[4, 4]", "float32[2,4]"),
    ],
)
def test_arguments_and_inputs_can_be_said_in_other_ways(
    zoo: Path, what: str, init: str | None, inputs: str | None
) -> None:
    assert ran(what, init, inputs).shape == (2, 4)


def test_two_classes_of_one_name_are_told_apart(zoo: Path) -> None:
    init = '{"config": {"zoo.config:NetConfig": {"activation": {"zoo.nets.net:Net": null}}}}'
    text = problem_text("zoo:Net", init, "float32[2,16]")
    assert "from zoo.nets.net import Net as Net_2\n" in text
    assert "Net(config=NetConfig(activation=Net_2))" in text


def test_long_arguments_go_to_lines_of_their_own(zoo: Path) -> None:
    many = ", ".join(f'"setting_number_{n}": [{n}, "text", true, null]' for n in range(9))
    text = problem_text("zoo:Net", f'{{"config": {{{many}}}}}', "float32[2,16]")
    assert max(map(len, text.splitlines())) <= 88
    assert '                "setting_number_8": [8, "text", True, None],\n' in text


def test_the_source_of_a_checkout_is_part_of_what_the_problem_is(zoo: Path) -> None:
    before = problem_text("zoo:Net", CONFIG, "float32[2,4]")
    (zoo / "zoo/nets/net.py").write_text(ZOO["nets/net.py"].replace("DEPTH = 3", "DEPTH = 4"))
    assert problem_text("zoo:Net", CONFIG, "float32[2,4]") != before


def test_an_installed_package_is_known_by_its_version() -> None:
    import pydantic

    assert package_identity("pydantic") == pydantic.VERSION
    assert package_identity("yaml")[0].isdigit()  # its distribution is PyYAML
    assert package_identity("no_such_thing") == "missing"
    assert package_identity("zoo.nets") == "missing"  # only a package's own name is asked for


def test_the_packages_of_a_file_are_those_that_it_imports(zoo: Path) -> None:
    path = resolve_problem_file("zoo:Net", CONFIG, "float32[2,4]", Path("output"))
    assert imported_packages(path) == {"zoo": package_identity("zoo")}
    path.write_text("import math, torch.nn\nfrom torch import nn\n")
    assert imported_packages(path) == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("nosuch.models:Net", None, "float32[2]"),
            "there is no package 'nosuch', installed or in ",
        ),
        (("zoo.nosuch:Net", None, "float32[2]"), "needs 'zoo.nosuch', which zoo does not have"),
        (("zoo:Nett", CONFIG, "float32[2,4]"), "zoo has no Nett (line 5); is it Net?"),
        (
            ("zoo.broken:Net", None, "float32[2]"),
            "RuntimeError: half finished (line 5; zoo/broken.py, line 3)",
        ),
        (
            ("zoo.unmet:Net", None, "float32[2]"),
            "needs the module 'no_such_thing', which is not installed (line 5); pip install",
        ),
        (("zoo:Net.nosuch", None, "float32[2]"), "AttributeError: type object 'Net' has no "),
        (("zoo.nets.net:DEPTH", None, "float32[2]"), "TypeError: 'int' object is not callable"),
        (("zoo.nets.net:a_number", None, "float32[2]"), "Model() gives an int, not an nn.Module"),
        (
            ("zoo.nets.net:a_number", None, None),
            "TypeError: zoo.nets.net:a_number gives int, not (model, inputs): say what it takes "
            "with --inputs (line 14, in _made)",
        ),
        (
            ("zoo.nets.net:model_and_number", None, None),
            "TypeError: zoo.nets.net:model_and_number gives int as inputs, not a list, a dict or",
        ),
        (("zoo.nets.net:small", None, "float32[2,4]"), "Model() gives a tuple, not an nn.Module"),
        (("zoo:Net", CONFIG, None), "TypeError: zoo:Net gives Net, not (model, inputs): say what"),
        (
            ("zoo:Net", CONFIG, "zoo.nets.net:a_number"),
            "TypeError: zoo.nets.net:a_number gives int",
        ),
        (
            ("zoo:Net", '{"widht": 4}', "float32[2]"),
            "TypeError: Net.__init__() got an unexpected keyword argument 'widht' (line 12, in ",
        ),
        (
            ("zoo:Net", '{"config": {"zoo.config:NetConfig": {"widht": 4}}}', "float32[2]"),
            "TypeError: NetConfig.__init__() got an unexpected keyword argument 'widht'",
        ),
        (
            ("zoo:Net", CONFIG, "y=float32[2,4]"),
            "Net.forward() missing a required argument: 'x'; it takes x, mask=None",
        ),
        (
            ("zoo:Net", CONFIG, "x=float32[2,4], masc=float32[2,4]"),
            "Net.forward() got an unexpected keyword argument 'masc'; it takes x, mask=None",
        ),
        (
            ("zoo:Net", CONFIG, "1, 2, 3"),
            "Net.forward() too many positional arguments; it takes x, mask=None",
        ),
    ],
    ids=str,
)
def test_what_does_not_resolve_or_fit_is_told_in_one_line(
    zoo: Path, arguments: tuple[str, str | None, str | None], message: str
) -> None:
    assert complaint(*arguments).startswith(message)


@pytest.mark.parametrize(
    ("target", "own"), [("zoo.nosuch:Net", True), ("zoo:Nett", True), ("zoo.unmet:Net", False)]
)
def test_what_was_named_and_is_not_there_is_told_apart_from_what_a_package_lacks(
    zoo: Path, target: str, own: bool
) -> None:
    problem = read_problem(resolve_problem_file(target, None, "float32[2]", Path("output")))
    with pytest.raises(ProblemError) as caught:
        load_problem(problem)
    assert isinstance(caught.value, MissingError) == own


def test_an_error_in_a_packages_forward_is_told_with_its_line(zoo: Path) -> None:
    problem = read_problem(resolve_problem_file("zoo:Net", CONFIG, "float32[2,5]", Path("output")))
    loaded = load_problem(problem)
    args, _ = loaded.get_inputs()
    with pytest.raises(RuntimeError) as raised:
        loaded.build()(*args)
    said = author_error(problem, raised.value).reason.replace("addmm: ", "")  # torch 2.15 names it
    assert said == (
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x5 and 4x4) "
        "(zoo/nets/net.py, line 19)"
    )


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (
            "{'a': 1}",
            "--init: not JSON: Expecting property name enclosed in double quotes (line 1,",
        ),
        ("[1", "--init: not JSON: Expecting ',' delimiter (line 1, column 3)"),
        ("5", '--init 5: neither {...} by name nor [...] by position; write {"hidden_size": 64}'),
        ("[NaN]", "--init: NaN is not JSON"),
        ("[1e999]", "--init: a number is too large"),
        ('{"a-b": 1}', "--init: 'a-b' is no argument's name; an object is written as"),
        ('{"class": 1}', "--init: 'class' is no argument's name"),
        ('{"config": {"nosuch:Config": {}}}', "--init nosuch:Config: there is no package 'nosuch'"),
        ('{"config": {"zoo:Net": 5}}', "--init zoo:Net: its arguments are 5; write {...} by name,"),
        ('{"config": {"zoo:Net": {"a b": 1}}}', "--init zoo:Net: 'a b' is no argument's name"),
    ],
)
def test_arguments_that_cannot_be_meant_are_told_in_one_line(
    zoo: Path, init: str, message: str
) -> None:
    with pytest.raises(UsageError) as told:
        problem_text("zoo:Net", init, "float32[2]")
    assert str(told.value).startswith(message)


def test_what_has_no_name_of_its_own_has_no_example_of_its_arguments(
    zoo: Path,
) -> None:
    (zoo / "zoo/parts.py").write_text(
        "import functools\nfrom torch import nn\nPart = functools.partial(nn.Linear, 4)\n"
    )
    zoo_parts = importlib.import_module("zoo.parts")

    with pytest.raises(TypeError) as raised:
        zoo_parts.Part()
    assert suggest_init("zoo.parts:Part", raised.value) is None
    assert suggest_init("zoo.nosuch:Part", raised.value) is None


def test_a_file_says_itself_what_it_is_built_from(zoo: Path) -> None:
    with pytest.raises(UsageError, match=r"--init is for package.module:Class; my.py says that"):
        resolve_problem_file(Path("my.py"), "[]", None, Path("output"))
    with pytest.raises(UsageError, match=r"--inputs is for package.module:Class; my.py says that"):
        resolve_problem_file(Path("my.py"), None, "float32[2]", Path("output"))
    assert resolve_problem_file(Path("my.py"), None, None, Path("output")) == Path("my.py")


def test_what_is_a_target_and_what_is_a_file(zoo: Path) -> None:
    assert is_target("zoo:Net")
    assert is_target("zoo.nets.net:Net.of_width")
    for other in ("zoo", "zoo.py", "zoo/nets:Net", "zoo:", ":Net", "zoo:Net()", "zoo::Net", "*:*"):
        assert not is_target(other)
    Path("odd:name").touch()
    assert not is_target("odd:name")


def test_a_selection_may_name_functions_in_packages(zoo: Path) -> None:
    found = write_target_problems(["resnet*", "zoo.nets.net:small"], Path("output"))
    assert found == ["resnet*", "output/problems/small.py"]
    assert read_problem(Path(found[1])).source_level == "custom"


def test_two_functions_of_one_name_would_be_one_problem(zoo: Path) -> None:
    (zoo / "zoo/other.py").write_text("from .nets.net import small\n")
    with pytest.raises(UsageError, match="would both be small; give one of them another name"):
        write_target_problems(["zoo.nets.net:small", "zoo.other:small"], Path("output"))


def test_a_word_of_pythons_own_is_no_name(zoo: Path) -> None:
    with pytest.raises(UsageError, match="zoo:class: a word of Python's own is no name"):
        problem_text("zoo:class", None, "float32[2]")


def test_a_decorated_forward_takes_what_its_decorator_takes(zoo: Path) -> None:
    (zoo / "zoo/decorated.py").write_text(
        "import functools\n\nfrom torch import nn\n\n\n"
        "def scaled(forward):\n"
        "    @functools.wraps(forward)\n"
        "    def with_scale(self, x):\n"
        "        return forward(self, x, 2.0)\n\n"
        "    return with_scale\n\n\n"
        "class Net(nn.Module):\n"
        "    @scaled\n"
        "    def forward(self, x, scale):\n"
        "        return x * scale\n"
    )
    assert ran("zoo.decorated:Net", None, "float32[2]=1").tolist() == [2.0, 2.0]
