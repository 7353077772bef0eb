"""`--inputs`: what it draws is what it says, and what cannot be meant is told in one line."""

import pytest
import torch

from runner.errors import UsageError
from runner.problems.input_language import DTYPES, parse_inputs


def drawn(spec: str) -> object:
    (given,) = parse_inputs(spec)
    torch.manual_seed(0)
    return eval(given.expression, {"torch": torch})


@pytest.mark.parametrize(
    ("spec", "expression"),
    [
        ("float32[8,3,224,224]", "torch.randn(8, 3, 224, 224)"),
        ("bfloat16[2, 16]", "torch.randn(2, 16, dtype=torch.bfloat16)"),
        ("float32[]", "torch.randn(())"),
        ("float32[8,16]<1", "torch.rand(8, 16)"),
        ("-1<=float32[8]<1", "torch.empty(8).uniform_(-1, 1)"),
        ("float64[2]<0.5", "torch.empty(2, dtype=torch.float64).uniform_(0, 0.5)"),
        ("int64[2,128]<32000", "torch.randint(0, 32000, (2, 128))"),
        ("1 <= int32[4] < 9", "torch.randint(1, 9, (4,), dtype=torch.int32)"),
        ("uint8[4]<256", "torch.randint(0, 256, (4,), dtype=torch.uint8)"),
        ("int64[2,128]=1", "torch.ones(2, 128, dtype=torch.int64)"),
        ("float32[3]=0", "torch.zeros(3)"),
        ("int64[2]=500", "torch.full((2,), 500, dtype=torch.int64)"),
        ("bool[2,128]", "torch.rand(2, 128) < 0.5"),
        ("bool[3]=true", "torch.ones(3, dtype=torch.bool)"),
        ("complex64[3]", "torch.randn(3, dtype=torch.complex64)"),
        ("false", "False"),
        ("None", "None"),
        ("0.5", "0.5"),
        ('"bicubic, [sharp"', '"bicubic, [sharp"'),
    ],
)
def test_an_input_becomes_an_expression(spec: str, expression: str) -> None:
    (given,) = parse_inputs(spec)
    assert (given.name, given.expression) == (None, expression)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_drawn_has_the_dtype_the_shape_and_the_range(dtype: str) -> None:
    whole = dtype.startswith(("int", "uint"))
    tensor = drawn(f"{dtype}[40,2]{'<7' if whole else ''}")
    assert isinstance(tensor, torch.Tensor)
    assert (str(tensor.dtype), tuple(tensor.shape)) == (f"torch.{dtype}", (40, 2))
    if whole:
        assert (int(tensor.min()), int(tensor.max())) == (0, 6)


def test_a_range_of_floats_holds() -> None:
    tensor = drawn("-3<=float32[500]<-2.5")
    assert isinstance(tensor, torch.Tensor)
    assert -3 <= tensor.min() < tensor.max() < -2.5


def test_inputs_have_names_and_an_order() -> None:
    found = parse_inputs(
        'float32[2,3], 4, ids=int64[2]<9,mask = int64[2]=1, mode="a,b", cache=false'
    )
    assert [given.name for given in found] == [None, None, "ids", "mask", "mode", "cache"]
    assert found[4].expression == '"a,b"'


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "--inputs: nothing in it; a tensor is written as float32[8,3,224,224]"),
        ("float32[2],", "--inputs float32[2],: nothing between two commas, or after the last"),
        ("int63[2]<3", "--inputs int63[2]<3: no dtype int63; is it int64?"),
        ("x=float[3]", "--inputs x=float[3]: no dtype float; is it float32?"),
        ("torch.float32[3]", "--inputs torch.float32[3]: is no tensor; write it as float32["),
        (
            "quaternion[3]",
            "--inputs quaternion[3]: no dtype quaternion; there are float32, float16",
        ),
        ("float32[x]", "--inputs float32[x]: 'x' is no size; a shape is whole numbers in brackets"),
        ("float32[3,,2]", "--inputs float32[3,,2]: a size is missing; a shape is whole numbers"),
        ("float32[-1]", "--inputs float32[-1]: '-1' is no size"),
        ("float32[3", "--inputs float32[3: is no tensor; write it as float32[8,3,224,224] or"),
        ("float32", "--inputs float32: float32 has no shape; a tensor is written as"),
        ("hello", "--inputs hello: 'hello' is neither a tensor nor a number, true, false, null"),
        ("int64[2]", "--inputs int64[2]: has no range; write int64[2]<100 for 0 to 99, or int64["),
        ("int64[2]<0", "--inputs int64[2]<0: nothing is from 0 to below 0"),
        ("5<=int64[2]<5", "--inputs 5<=int64[2]<5: nothing is from 5 to below 5"),
        ("5<=int64[2]", "--inputs 5<=int64[2]: is bounded below, not above: 5<= needs <HIGH"),
        ("5<=int64[2]=5", "--inputs 5<=int64[2]=5: has a range and a value; leave one of them out"),
        ("int64[2]<1.5", "--inputs int64[2]<1.5: '1.5' is no whole number"),
        ("uint8[3]<257", "--inputs uint8[3]<257: uint8 does not hold 257: it goes from 0 to 255"),
        ("float32[2]<nan", "--inputs float32[2]<nan: 'nan' is no number"),
        ("float32[2]=", "--inputs float32[2]=: '' is no number"),
        ("1e400", "--inputs 1e400: '1e400' is no number"),
        ("bool[2]<3", "--inputs bool[2]<3: bool has no range; write bool[...] alone"),
        ("bool[2]=2", "--inputs bool[2]=2: '2' is neither true nor false"),
        ("x=1, float32[2]", "--inputs float32[2]: has no name, after one that has; inputs without"),
        ("x=1, x=2", "--inputs x=2: x is there twice"),
        ("int64=[3]", "--inputs int64=[3]: int64 is no input's name; a tensor is written as"),
        ("for=float32[2]", "--inputs for=float32[2]: for is no input's name"),
    ],
)
def test_what_cannot_be_meant_is_told_in_one_line(spec: str, message: str) -> None:
    with pytest.raises(UsageError) as told:
        parse_inputs(spec)
    assert str(told.value).startswith(message)
    assert "\n" not in str(told.value)
