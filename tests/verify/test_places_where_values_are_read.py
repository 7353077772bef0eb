"""A kernel reads into Python the values that the original reads, and no others."""

import pytest
from decompositions_of_expressions import lone
from verdicts import assert_passes

pytestmark = pytest.mark.long

KERNEL = "level_0_kernel/kernel.py"
PLAIN = "if float(x.max()) > 99:\n    return x\nreturn torch.relu(x)"
PARTS = "y = torch.zeros_like(x)\ny[0] = x[0]\n"
IN_PARTS = f"{PARTS}if float(y.max()) > 99:\n    return x\nreturn torch.relu(x)"
"""The original reads a tensor that is written in parts, which an equal program may not have."""

OTHERS = {
    "of the input": (PLAIN, "torch.relu(x) if float(x[0, 0]) < 50 else x"),
    "of the result": (PLAIN, "torch.relu(x) if float(torch.relu(x)[0, 0]) < 50 else x"),
    "of the input, beside a tensor in parts": (
        IN_PARTS,
        "torch.relu(x) if float(x[0, 0]) < 50 else x",
    ),
    "of a tensor in parts that the original does not have": (
        PLAIN.replace("return torch", f"{PARTS}return torch"),
        "torch.relu(x) if float(y[0, 0]) < 50 else x",
    ),
}


def problem(directory, original: str, kernel: str):
    made = lone(directory, "x")
    for path, text in (("original.py", original), (KERNEL, kernel)):
        made.edit(path, "        return x", f"        {text}".replace("\n", "\n        "))
    made.edit_tree(lambda tree: tree["metadata"].pop("source_sha256"))
    return made


@pytest.mark.parametrize("name", OTHERS)
def test_other_values_are_told(name, tmp_path, judged, complaints):
    text, returned = OTHERS[name]
    original = text.replace(PARTS, "") if "does not have" in name else text
    made = problem(tmp_path / "made", original, text.replace("torch.relu(x)", returned))

    said = complaints(judged(made, trials=1), "rules")

    assert "that original.py does not read there" in said[KERNEL]


@pytest.mark.parametrize("text", [PLAIN, IN_PARTS])
def test_the_originals_values_may_be_read(text, tmp_path, judged):
    assert_passes(judged(problem(tmp_path / "made", text, text), trials=1))


def test_what_the_original_writes_in_parts_may_be_written_in_another_way(tmp_path, judged):
    kernel = IN_PARTS.replace(PARTS, "y = x.new_zeros(4, 16)\ny[0] = x[0]\n")

    assert_passes(judged(problem(tmp_path / "made", IN_PARTS, kernel), trials=1))
