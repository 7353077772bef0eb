"""What a worker says is checked before anything is done with it."""

import pytest

from runner.torch_internals import find_operator
from runner.verify.guard.claims import check_model, check_program, check_value
from runner.verify.guard.replica import resolve_function
from runner.verify.guard.wire_format import ConnectionLostError

ARGUMENTS = [{"u": [{"t": 0}]}, {"d": []}]
RELU = ["function", "torch.relu", *ARGUMENTS, {"t": 1}, "level_0_kernel/relu.py:9"]


def program(**changes):
    return {
        "items": [RELU],
        "output": {"t": 1},
        "dtype": "float32",
        "rebound": [],
        "again": True,
        "kept": [],
    } | changes


FORGED = {
    "a number that is a text": {"output": {"t": "0; import os"}},
    "a name that is a text": {"items": [["function", "torch.relu(x); print", *RELU[2:]]]},
    "a keyword that is a text": {
        "items": [[*RELU[:3], {"d": [["a=1, b", 1]]}, {"t": 1}, "relu.py:9"]]
    },
    "a shape that is a text": {
        "items": [["alias", 1, 0, "print()", [1], 0, "float32", False, False]]
    },
    "a device that is a text": {
        "items": [[*RELU[:2], {"u": [{"v": "cpu'), print('"}]}, *RELU[3:]]]
    },
    "a number in a complex one": {"output": {"c": ["1", "print()"]}},
    "an item that is none": {"items": [["run", "print()"]]},
    "no items": {"items": None},
    "no dtype": {"dtype": "load"},
    "nothing": {"kept": ["x"]},
}


def test_what_a_forward_says_is_a_claim():
    check_program(program())


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_what_has_another_form_is_no_claim(change):
    with pytest.raises(ConnectionLostError):
        check_program(program(**change))


@pytest.mark.parametrize(
    "change", [{"modules": [["", "", 3, False, []]]}, {"weights": [["file", [], 1, 0]]}]
)
def test_what_describes_no_model_is_no_claim(change):
    described = {"model": 1, "modules": [["", "", None, False, []]], "weights": [], "computed": []}
    check_model(described)

    with pytest.raises(ConnectionLostError):
        check_model(described | change)


def test_a_value_of_another_kind_is_none():
    with pytest.raises(ConnectionLostError):
        check_value({"import": "os"})


@pytest.mark.parametrize(
    "name",
    [
        "load_library::__call__.__call__",
        "import_module::__globals__.clear",
        "aten::relu.__setattr__",
        "aten::save",
        "aten::from_file",
        "profiler::_record_function_enter",
        "",
        "no::such",
    ],
)
def test_what_does_not_compute_is_not_done_again(name):
    with pytest.raises(ConnectionLostError):
        resolve_function(["operation", name, *ARGUMENTS, None, ""])


def test_operators_are_found_by_the_dispatchers_names():
    assert str(find_operator("aten::add.Tensor")) == "aten.add.Tensor"
    assert str(find_operator("aten::linear")) == "aten.linear.default"


def test_a_function_that_torch_does_not_have_is_not_called():
    with pytest.raises(ConnectionLostError):
        resolve_function(["function", "torch.load", *ARGUMENTS, None, ""])
