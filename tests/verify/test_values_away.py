"""An output whose memory others use meanwhile: on disk then, and as it was afterwards."""

from copy import deepcopy

import pytest
import torch

from runner.verify.gates.compare import STEP, compare
from runner.verify.runtime.disk_cache import DiskCache
from runner.verify.runtime.output_leaves import tensors

OUTPUTS = {
    "a tensor": lambda x: x,
    "turned in memory": lambda x: x.transpose(0, 1),
    "several of one buffer": lambda x: (x[:, :3], {"rest": x[:, 3:]}),
    "several and no tensors": lambda x: [x, x * 2, 7, None, x],
    "half precision": lambda x: x.bfloat16(),
    "truth": lambda x: x > 0,
    "conjugate": lambda x: torch.complex(x, x).conj(),
    "nothing in it": lambda x: (x, x[:0]),
    "a number": lambda x: x.sum(),
    "the same often": lambda x: (x[:, :1].clone().expand(4, 8), x, x[:, :1].expand(4, 6)),
    "one and its last": lambda x: (x, x[-1]),
    "windows that overlap": lambda x: x.unfold(1, 3, 1),
    "a part": lambda x: x[1:3, 2:],
}


def held(output):
    return [tensor.untyped_storage().nbytes() for tensor in tensors(output)]


@pytest.mark.parametrize("make", OUTPUTS.values(), ids=OUTPUTS)
def test_the_memory_is_free_meanwhile_and_the_same_tensors_hold_the_same_after(make):
    output = make(torch.randn(4, 6))
    before, sizes = deepcopy(output), held(output)
    versions = [tensor._version for tensor in tensors(output)]

    with DiskCache(1) as spill, spill.free_memory(output, [torch.ones(3)]) as kept:
        assert not any(held(output))
        assert compare(kept, before, STEP).bitwise_equal
    assert held(output) == sizes
    assert compare(before, output, STEP).bitwise_equal
    assert [tensor._version for tensor in tensors(output)] == versions


def test_they_hold_it_again_where_the_work_meanwhile_fails(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    output = torch.arange(5.0)
    with pytest.raises(ArithmeticError), DiskCache(1) as spill, spill.free_memory(output, []):
        raise ArithmeticError
    assert output.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert not list(tmp_path.iterdir())


def test_all_that_lies_in_the_same_memory_is_there_again():
    buffer = torch.arange(12.0).view(3, 4)
    with DiskCache(1) as spill, spill.free_memory(buffer[1], []) as kept:
        assert kept.shape == (4,)
    assert buffer.flatten().tolist() == list(range(12))


SHARED = torch.ones(4, 6)
STAYING = {
    "an input": (SHARED[0], SHARED[1]),
    "a weight": (SHARED, {"weight": SHARED.t()}),
    "somebody else's memory": (torch.from_numpy(torch.ones(3).numpy()), []),
}


@pytest.mark.parametrize(("output", "others"), STAYING.values(), ids=STAYING)
def test_what_others_hold_too_stays(output, others):
    with DiskCache(1) as spill, spill.free_memory((output, output * 2), others) as kept:
        assert kept[0] is output
        assert not isinstance(kept[1], torch.Tensor)
        assert output.sum() == output.numel()


def test_it_stays_where_the_disk_is_full(monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 100})())
    output = torch.ones(1000)
    with DiskCache(1) as spill, spill.free_memory(output, []) as kept:
        assert kept is None
        assert output.sum() == 1000
