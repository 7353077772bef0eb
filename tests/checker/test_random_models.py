"""Random models decompose, recompose bitwise, and keep every rule."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from checker.counting import tensors_in
from checker.directory import Directory
from checker.random_models import problem
from checker.rules import check
from checker.running import build, owned_by
from runner.emit import decompose
from runner.graph import Mode
from runner.problems import read_problem

pytestmark = pytest.mark.long

LEVELS = ["level1", "level2", "level3", "own"]


def differences(directory: Path, seed: int) -> list[str]:
    """Where the model of kernels alone does not give the author's result, bit for bit."""
    files = Directory(directory)
    train = files.metadata["mode"] == "train"
    with files.loaded("original.py") as module:
        torch.manual_seed(seed)
        original = build(module).train(train)
        inputs = module.get_inputs()
    torch.backends.mha.set_fastpath_enabled(False)  # one operator for a whole layer
    try:
        with files.loaded("verification/composition_test.py") as module, torch.no_grad():
            composed = module.ComposedModel().train(train)
            theirs, mine = owned_by(original), owned_by(composed)
            for target, source in module.WEIGHTS.items():
                mine[target].data = theirs[source].data.clone()
            again = [x.clone(memory_format=torch.preserve_format) for x in inputs]
            torch.manual_seed(seed)
            expected = list(tensors_in(original(*inputs)))
            torch.manual_seed(seed)
            actual = list(tensors_in(composed(*again)))
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    assert len(expected) == len(actual)
    return [
        f"output {k}: {a.dtype} {tuple(a.shape)}"
        for k, (e, a) in enumerate(zip(expected, actual, strict=True))
        if e.dtype != a.dtype or not _equal(e, a)
    ]


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    if not one.is_floating_point():
        return torch.equal(one, other)
    return torch.equal(one.isnan(), other.isnan()) and torch.equal(
        one.nan_to_num(), other.nan_to_num()
    )


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data(), st.sampled_from(LEVELS), st.sampled_from(["eval", "eval", "train"]))
def test_a_random_model_recomposes_bitwise_and_keeps_the_rules(
    data: st.DataObject, level: str, mode: Mode
) -> None:
    source = problem(lambda options: data.draw(st.sampled_from(options)))
    note(source)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / level / "random_model.py"
        file.parent.mkdir()
        file.write_text(source, encoding="utf-8")
        directory = Path(folder) / "out"
        decompose(read_problem(file), directory, mode=mode)

        assert [str(finding) for finding in check(directory)] == []
        assert differences(directory, seed=1) == []
