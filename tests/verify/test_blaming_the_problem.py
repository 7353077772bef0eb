"""Code of a judged directory never makes its failure the problem's error."""

import hashlib

import pytest
import torch

from runner.errors import MissingError
from runner.verify.original_check import describe_inputs

COMPOSITION_TEST = "verification/composition_test.py"
RAISES = """\
        import sys
        raise sys.modules["runner.errors"].ProblemError("x.py", "boo")
"""
BREAKS_THE_ORIGINAL = """
import sys

for module in list(sys.modules.values()):
    if str(getattr(module, "__file__", "")).endswith("/original.py"):
        module.Model.forward = None
"""
MISSING = "import nosuchpackage_x\n"


def test_a_kernel_cannot_raise_the_problems_error(softmax, judged):
    kernel = "level_0_kernel/softmax_4x16_fp32.py"
    softmax.edit(kernel, "        return torch.softmax", f"{RAISES}        return torch.softmax")

    assert judged(softmax).status == "failed"


def test_a_composition_test_does_not_reach_the_original(softmax, judged):
    softmax.write(COMPOSITION_TEST, softmax.read(COMPOSITION_TEST) + BREAKS_THE_ORIGINAL)

    fault = judged(softmax).first_failure

    assert fault is not None
    assert fault.startswith(f"rules: {COMPOSITION_TEST}: uses sys")


def test_a_package_that_is_missing_hides_no_replaced_original(softmax, judged):
    softmax.write("original.py", MISSING + softmax.read("original.py"))

    verification = judged(softmax)

    assert verification.first_failure.startswith(
        "rules: decomposition_tree.json: original.py is not the file that was decomposed"
    )


def of_the_tree(softmax):
    softmax.write("original.py", MISSING + softmax.read("original.py"))
    digest = hashlib.sha256(softmax.read("original.py").encode()).hexdigest()
    softmax.edit_tree(lambda tree: tree["metadata"].update(source_sha256=digest))


def test_a_package_that_is_missing_is_the_problems_where_nothing_else_is_wrong(softmax, judged):
    of_the_tree(softmax)

    with pytest.raises(MissingError, match="needs the module 'nosuchpackage_x'"):
        judged(softmax)


def test_a_package_is_not_missing_because_a_composition_test_says_so(softmax, judged):
    of_the_tree(softmax)
    softmax.write(COMPOSITION_TEST, "x = 1\n")

    assert "no class ComposedModel" in judged(softmax).first_failure


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (torch.tensor([3, 97]), "int64[2] from 3 to 97"),
        (torch.tensor([3, 97], dtype=torch.int8), "int8[2] from 3 to 97"),
        (torch.tensor([True]), "bool[1]"),
        (torch.zeros(0), "float32[0]"),
        (torch.ones(2, dtype=torch.uint16), "uint16[2]"),
        (torch.ones(2, dtype=torch.uint32), "uint32[2]"),
        (torch.ones(2, dtype=torch.complex64), "complex64[2]"),
        (torch.eye(2).to_sparse(), "float32[2, 2]"),
        (torch.ones(2, device="meta"), "float32[2]"),
    ],
)
def test_inputs_are_described_with_their_range_where_there_is_one(tensor, said):
    assert describe_inputs(((tensor,), {})) == said
