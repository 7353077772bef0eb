"""`torch.cat([empty, x])` is judged as a copy of x, and any other cat as a cat."""

import pytest
import torch

from runner.verify.gates.operation_identity import bind_arguments, name_as_copy

X = torch.ones(2, 3)
EMPTY = torch.tensor([])


@pytest.mark.parametrize(
    ("overload", "tensors", "keywords", "name"),
    [
        ("default", [EMPTY, X], {}, "clone"),
        ("default", [X], {}, "cat"),
        ("default", [X, X], {}, "cat"),
        ("default", [EMPTY.double(), X], {}, "cat"),
        ("out", [EMPTY, X], {"out": torch.empty(2, 3)}, "cat"),
    ],
)
def test_what_it_is_judged_as(
    overload: str, tensors: list[torch.Tensor], keywords: dict[str, torch.Tensor], name: str
) -> None:
    func = getattr(torch.ops.aten.cat, overload)
    bound = list(bind_arguments(func, (tensors,), keywords))
    assert name_as_copy("cat", bound)[0] == name
