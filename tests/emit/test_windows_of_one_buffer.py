"""Inputs that are windows of one tensor in the model are windows of one buffer in `get_inputs`."""

import runpy

import pytest
import torch
from models import NO_INIT, Decomposed

MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 12)

    def forward(self, x):
        y = self.fc(x)
        {windows}
        return torch.atan2(a, b)

def get_inputs(): return [torch.randn(4, 8)]
"""
WINDOWS = {
    "split": "a, b = y.split(6, dim=1)",
    "split from the end": "a, b = y.split(6, dim=-1)",
    "split by sizes": "_, a, b = y.split([2, 5, 5], dim=1)",
    "chunks of which the last is smaller": "a, b = y.chunk(5, dim=1)[1:3]",
    "unbound": "_, a, b = y.view(4, 3, 4).unbind(1)",
    "selected": "a, b = y.view(4, 3, 4)[:, 2], y.view(4, 3, 4)[:, 0]",
    "slices": "a, b = y[:, 1:6], y[:, -5:]",
    "slices from before the beginning": "a, b = y[:, -20:5], y[:, 5:10]",
    "squeezed twice": "a, b = (t.view(4, 1, 6, 1).squeeze((1, 3)) for t in y.split(6, dim=1))",
    "every second": "a, b = y[:, 0::2], y[:, 1::2]",
    "windows that share elements": "a, b = y[:, :-1], y[:, 1:]",
    "turned": "a, b = (t.view(4, 2, 3).transpose(1, 2) for t in y.split(6, dim=1))",
}


@pytest.mark.parametrize("way", WINDOWS)
def test_they_lie_in_the_buffer_as_they_do_in_the_model(decomposed: Decomposed, way: str) -> None:
    there: dict[str, torch.Tensor] = {"y": torch.empty(4, 12)}
    exec(WINDOWS[way], {}, there)
    directory = decomposed(MODEL.format(windows=WINDOWS[way]) + NO_INIT)
    (file,) = (directory / "level_0_kernel").glob("atan2*.py")
    a, b = runpy.run_path(str(file))["get_inputs"]()
    assert a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    assert (a.shape, b.shape) == (there["a"].shape, there["b"].shape)
    assert (a.stride(), b.stride()) == (there["a"].stride(), there["b"].stride())
    apart = there["b"].storage_offset() - there["a"].storage_offset()
    assert b.storage_offset() - a.storage_offset() == apart


ONE_BY_ONE = {
    "without gaps": "a, b = y.view(2, 24).unbind(0)",
    "of two tensors": "a, b = y[:, :6], self.fc(x + 1)[:, 6:]",
}


@pytest.mark.parametrize("way", ONE_BY_ONE)
def test_others_are_drawn_one_by_one(decomposed: Decomposed, way: str) -> None:
    directory = decomposed(MODEL.format(windows=ONE_BY_ONE[way]) + NO_INIT)
    (file,) = (directory / "level_0_kernel").glob("atan2*.py")
    a, b = runpy.run_path(str(file))["get_inputs"]()
    assert a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr()


def test_windows_that_are_drawn_by_different_rules_are_drawn_one_by_one(
    decomposed: Decomposed,
) -> None:
    scaled = """
class Scaled(nn.Module):
    def forward(self, a, b):
        return torch.tanh(a + torch.asin(b))
"""
    model = MODEL.format(windows="a, b = y.split(6, dim=1); a = self.scaled(a, b)")
    model = model.replace("self.fc =", "self.scaled = Scaled(); self.fc =")
    directory = decomposed(scaled + model + NO_INIT)
    (file,) = (directory / "level_0_kernel").glob("scaled*.py")
    b, a = runpy.run_path(str(file))["get_inputs"]()
    assert a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr()
    assert a.stride() == b.stride() == (12, 1)
    assert (b > 0).all()


def test_a_window_is_written_as_a_slice_of_what_the_model_splits(decomposed: Decomposed) -> None:
    directory = decomposed(MODEL.format(windows=WINDOWS["turned"]) + NO_INIT)
    (file,) = (directory / "level_0_kernel").glob("atan2*.py")
    text = file.read_text()
    assert "    a = fc[:, :2].permute(0, 2, 1)\n" in text
    assert "    b = fc[:, 2:].permute(0, 2, 1)\n" in text
