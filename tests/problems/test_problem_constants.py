"""A problem's named literals: which there are, and how one is replaced and nothing else."""

import ast

import pytest

from runner.errors import UsageError
from runner.problems.constants import (
    evaluate_literal,
    find_constants,
    literal_text,
    replace_constants,
)

SOURCE = """\
import torch
BATCH, seq = 8, 128  # tokens
groups = BATCH
M = 1024 * 2
kernel_size = (3, 5)
act: str = "relu"


class Model(torch.nn.Module):
    def __init__(self, width, depth=2):
        super().__init__()


def get_inputs(rows=4, *, columns=6):
    scale = 0.5
    return [torch.randn(BATCH, M, rows, columns) * scale]


def get_init_inputs():
    return [256, M]
"""


def changed(source: str, **texts: str) -> str:
    literals = find_constants(source.encode())
    edits = [(c, text) for name, text in texts.items() for c in literals.find(name)]
    return replace_constants(source.encode(), edits, "net.py").decode()


def test_constants_are_at_the_top_and_in_the_input_functions() -> None:
    literals = find_constants(SOURCE.encode())
    assert {c.name: (c.text, c.place) for c in literals.constants} == {
        "BATCH": ("8", "file"),
        "seq": ("128", "file"),
        "M": ("1024 * 2", "file"),
        "kernel_size": ("(3, 5)", "file"),
        "act": ('"relu"', "file"),
        "rows": ("4", "get_inputs()"),
        "columns": ("6", "get_inputs()"),
        "scale": ("0.5", "get_inputs()"),
        "width": ("256", "get_init_inputs()"),
    }
    assert literals.computed == {"groups": "BATCH"}


def test_a_line_says_what_there_was_and_no_other_character_changes() -> None:
    text = changed(SOURCE, M="64", BATCH="1", seq="16", width="32")
    assert (
        text.replace("# ", "#").splitlines()[1]
        == "BATCH, seq = 1, 16  #tokens  #BATCH 8, seq 128 in net.py"
    )
    assert "M = 64  # 1024 * 2 in net.py\n" in text
    assert "    return [32, M]  # 256 in net.py\n" in text
    untouched = set(SOURCE.splitlines()) & set(text.splitlines())
    assert len(untouched) == len(set(SOURCE.splitlines())) - 3


@pytest.mark.parametrize(
    "source",
    [
        "n = 3; text = '''\n# 3'''\n",  # the line ends inside a string
        "n = 3; m = 4 + \\\n 5\n",  # a comment after a backslash would be an error
        "\ufeffn = 3\r\nm = 4\r\n",
        "é = 'ü'; n = 3\n",
        "n = (\n    3\n)\n",
    ],
)
def test_a_value_is_replaced_wherever_it_stands(source: str) -> None:
    text = changed(source, n="7")
    values = {}
    exec(text.removeprefix("\ufeff"), values)
    assert values["n"] == 7
    before = ast.dump(ast.parse(source.removeprefix("\ufeff")))
    assert ast.dump(ast.parse(text.removeprefix("\ufeff"))) == before.replace(
        "value=3)", "value=7)", 1
    )


def test_a_name_is_found_in_any_case_unless_two_names_differ_in_it_alone() -> None:
    assert find_constants(b"BATCH_SIZE = 4").find("batch_size")[0].value == 4
    both = find_constants(b"N = 4\nn = 5")
    assert both.find("n")[0].value == 5
    with pytest.raises(UsageError, match="nN means NN or nn"):
        find_constants(b"NN = 1\nnn = 2").find("nN")


def test_an_unknown_or_computed_name_is_one_line_with_the_list() -> None:
    literals = find_constants(SOURCE.encode())
    with pytest.raises(UsageError) as error:
        literals.find("batchsize")
    assert str(error.value).startswith("no constant batchsize; the file has BATCH = 8, seq = 128, ")
    with pytest.raises(UsageError, match="groups is computed, BATCH; the file has"):
        literals.find("groups")
    assert find_constants(b"this is no Python").constants == ()


def test_a_word_is_a_value_only_where_the_constant_is_text() -> None:
    literals = find_constants(SOURCE.encode())
    assert literal_text("gelu", literals.find("act")) == "'gelu'"
    with pytest.raises(UsageError, match=r"M=many: no literal; the file has 1024 \* 2"):
        literal_text("many", literals.find("M"))


@pytest.mark.parametrize(
    "text", ["9**9**9", "1 << 70000", "__import__('os')", "2 ** -1e400", "[", ""]
)
def test_no_code_and_no_endless_number_is_a_literal(text: str) -> None:
    with pytest.raises(ValueError, match="literal"):
        evaluate_literal(text)
