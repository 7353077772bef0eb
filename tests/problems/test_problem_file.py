"""A problem file as text: what it is called, and what is wrong with it before anything runs."""

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.errors import ProblemError
from runner.problems import read_problem
from runner.problems.problem import find_mistake, summarize_problem

Write = Callable[..., Path]


def complaint(path: Path) -> str:
    """The one line that a user reads about a broken file, without the file's name."""
    with pytest.raises(ProblemError) as caught:
        read_problem(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


def test_a_whole_file_is_known_by_its_name_level_and_content(write: Write) -> None:
    path = write(name="level2/7_Doubling.py")
    problem = read_problem(path)
    assert (problem.path, problem.name, problem.source_level) == (path, "7_Doubling", "level2")
    assert problem.level == 2
    assert problem.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_in_no_level_folder_is_custom(write: Write) -> None:
    problem = read_problem(write(name="level9/doubling.py"))
    assert (problem.source_level, problem.level) == ("custom", None)


def test_a_relative_path_becomes_absolute(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write()
    monkeypatch.chdir(path.parent)
    assert read_problem(Path("doubling.py")).path == path


def test_reading_needs_no_torch(write: Write) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from runner.problems.problem import read_problem, summarize_problem\n"
        f"print(summarize_problem(read_problem(Path({str(write())!r}))))\n"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "Doubling, as small as a problem can be")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "class Model",
            "class Net",
            "no class Model; rename class Net to Model",
        ),
        (
            "def get_inputs",
            "def inputs",
            "no get_inputs(); add `def get_inputs()` that returns the list of forward()'s inputs",
        ),
        (
            "def get_init_inputs",
            "def init_inputs",
            "no get_init_inputs(); add `def get_init_inputs()` that returns the list of Model's "
            "arguments, [] for none",
        ),
        ("x * self.factor", "x * (self.factor", "SyntaxError: '(' was never closed (line 13)"),
        (
            "        return x",
            "    return x",
            "IndentationError: expected an indented block after function definition on line 12 "
            "(line 13)",
        ),
    ],
)
def test_a_file_that_is_no_problem_says_what_it_lacks(
    write: Write, old: str, new: str, expected: str
) -> None:
    assert complaint(write(old, new)) == expected


def test_a_file_that_is_not_utf_8_names_the_byte_and_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes(b"import torch\n# caf\xe9\n")
    assert complaint(path) == "not UTF-8: byte 0xe9 (line 2); save the file as UTF-8"


def test_a_byte_order_mark_is_no_fault(write: Write) -> None:
    path = write()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_problem(path).name == "doubling"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("# nothing yet\n", "the file has comments and no code"),
    ],
)
def test_an_empty_file_says_so(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "empty.py"
    path.write_text(text)
    assert complaint(path).startswith(f"{said}; a problem has `class Model(nn.Module)`")


def test_null_bytes_are_not_python(tmp_path: Path) -> None:
    path = tmp_path / "nulls.py"
    path.write_bytes(b"x = 1\0\n")
    assert "null bytes" in complaint(path)


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    assert complaint(tmp_path) == (
        "is a directory, not a problem file; --data takes a directory of problems"
    )


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    assert complaint(tmp_path / "nowhere.py") == "no such file"


def test_names_defined_under_a_condition_count(write: Write) -> None:
    path = write(
        "def get_init_inputs():\n    return [2.0]",
        "if True:\n    get_init_inputs = lambda: [2.0]",
    )
    assert read_problem(path).name == "doubling"


def test_names_that_are_imported_count(tmp_path: Path) -> None:
    path = tmp_path / "imported.py"
    path.write_text("from somewhere import *\n")
    assert read_problem(path).name == "imported"


@pytest.mark.parametrize(
    "text",
    [
        "from somewhere import Net as Model",
        "try:\n    from fast import Model\nexcept ImportError:\n    Model = None",
        "match 1:\n    case Model:\n        pass\nif (Model := 1):\n    pass",
        "exec('class Model: pass')",
        "globals()['Model'] = 1",
        "def define():\n    global Model\n    Model = 1\ndefine()",
        "sys.modules[__name__].Model = 1",
        "def __getattr__(name):\n    return 1",
    ],
)
def test_names_that_are_bound_in_any_other_way_are_left_to_the_run(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "unusual.py"
    path.write_text(f"{text}\nget_inputs = get_init_inputs = list\n")
    assert read_problem(path).name == "unusual"


@pytest.mark.parametrize("text", ["Model: type", "def f():\n    Model = 1", "print('Model')"])
def test_names_that_are_bound_nowhere_in_the_module_are_missing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "nameless.py"
    path.write_text(f"{text}\nget_inputs = get_init_inputs = list\n")
    assert complaint(path).startswith("no class Model; ")


@pytest.mark.parametrize(
    "text",
    [
        "class M:\n    def forward(self, x):\n        for m in self.modules():\n            m(x)",
        "class M:\n    def __init__(self):\n        setattr(self, 'a', vars(self))",
        "cache = None\ndef f():\n    global cache\n    cache = eval('1')",
        "modules = torch.nn.Module().modules()",
    ],
)
def test_what_binds_no_name_of_the_module_hides_no_missing_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ordinary.py"
    path.write_text(f"Model = get_init_inputs = object\n{text}\n")
    assert complaint(path).startswith("no get_inputs(); ")


def test_a_large_file_is_left_to_a_child(tmp_path: Path) -> None:
    path = tmp_path / "large.py"
    path.write_text("x = (")
    assert "was never closed" in str(find_mistake(path))
    path.write_text("x = (" + "1, " * (1 << 19))
    assert find_mistake(path) is None
    assert "no such file" in str(find_mistake(tmp_path / "nowhere.py"))


def test_the_idea_is_the_first_sentence_of_the_docstring(write: Write) -> None:
    path = write("Doubling, as small as a problem can be.", "Doubles, e.g. 2.5. Nothing else.")
    assert summarize_problem(read_problem(path)) == "Doubles, e.g. 2.5"


def test_the_idea_may_stand_in_the_models_docstring(write: Write) -> None:
    text = write().read_text()
    path = write()
    path.write_text(
        text.split("\n", 1)[1].replace(
            "    def __init__",
            '    """\n    Doubles\n    its input.\n    """\n\n    def __init__',
            1,
        )
    )
    assert summarize_problem(read_problem(path)) == "Doubles its input"


def test_without_a_docstring_the_name_is_the_idea(write: Write) -> None:
    path = write(name="12_Matmul_with__scaling_.py")
    path.write_text(path.read_text().split("\n", 1)[1])
    assert summarize_problem(read_problem(path)) == "Matmul with scaling"
