"""Tensors arrive as they were, in memory that both processes map; neither changes the other's."""

import gc
import os

import pytest
import torch

from runner.verify.guard.shared_memory import Memory, MemoryFile, NoTensorError, NotToldError


def test_tensors_arrive_with_their_strides_and_the_memory_that_they_share():
    whole = torch.arange(12.0).view(3, 4)
    tensors = [
        torch.empty(0),
        whole,
        whole.t()[1:],
        torch.randn(3, dtype=torch.bfloat16),
        torch.tensor([True, False]),
        torch.nn.Parameter(torch.ones(2), requires_grad=False),
        torch.randn(2, dtype=torch.complex64).conj(),
    ]

    read = Memory().read(*Memory().write(tensors))

    assert all(map(torch.equal, tensors, read))
    assert [t.stride() for t in read] == [t.stride() for t in tensors]
    assert isinstance(read[5], torch.nn.Parameter)
    read[1][0, 1] = 99
    assert read[2][0, 0] == 99
    assert whole[0, 1] == 1


def test_what_a_reader_writes_stays_with_it():
    told, blocks = Memory().write([torch.zeros(30_000)])

    (one,) = Memory().read(told, blocks)
    (other,) = Memory().read(told, blocks)
    one.fill_(1)

    assert not other.any()


def test_what_was_written_cannot_be_changed():
    _, (block,) = Memory().write([torch.zeros(30_000)])

    with pytest.raises(PermissionError):
        os.pwrite(block.descriptor, b"x", 0)


def test_what_its_writer_could_change_is_copied():
    told, (block,) = Memory().write([torch.zeros(30_000)])
    open_file = MemoryFile(os.memfd_create("open"))
    os.pwrite(open_file.descriptor, os.pread(block.descriptor, 120_000, 0), 0)

    (read,) = Memory().read(told, [open_file])
    os.pwrite(open_file.descriptor, b"xxxx", 0)

    assert not read.any()


def test_a_large_tensor_is_written_again_only_if_it_changed():
    memory, weight = Memory(), torch.nn.Parameter(torch.zeros(30_000))
    _, (first,) = memory.write([weight])

    assert memory.write([weight])[1] == [first]
    assert memory.write([weight.detach().view(2, -1)])[1] == [first]
    with torch.no_grad():
        weight.add_(1)
    told, blocks = memory.write([weight])

    assert blocks != [first]
    assert Memory().read(told, blocks)[0].all()


def test_a_tensor_that_came_is_handed_on_as_it_came():
    told, (block,) = Memory().write([torch.zeros(30_000)])
    memory = Memory()
    (read,) = memory.read(told, [block])

    assert memory.write([read])[1] == [block]
    read.add_(1)
    assert memory.write([read])[1] != [block]


def test_a_file_is_closed_with_its_last_tensor():
    memory, tensor = Memory(), torch.zeros(30_000)
    number = memory.write([tensor])[1][0].descriptor

    del tensor
    memory.write([])
    gc.collect()

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_a_tensor_without_values_is_told_by_its_shape():
    (read,) = Memory().read(*Memory().write([torch.empty(5, 2, device="meta")]))

    assert read.is_meta
    assert read.shape == (5, 2)


def test_a_sparse_tensor_is_not_told():
    with pytest.raises(NotToldError, match="layout torch"):
        Memory().write([torch.eye(3).to_sparse()])


@pytest.mark.parametrize(
    "change",
    [
        {"at": 1 << 40},
        {"bytes": 1 << 20},
        {"shape": [99]},
        {"offset": -1},
        {"dtype": "load"},
        {"dtype": 3},
        {"shape": "x"},
        {"block": 7},
    ],
    ids=str,
)
def test_a_tensor_that_does_not_lie_in_its_file_is_refused(change):
    told, blocks = Memory().write([torch.ones(4)])
    told[0] |= change

    with pytest.raises(NoTensorError):
        Memory().read(told, blocks)


def test_what_is_no_file_is_refused():
    told, _ = Memory().write([torch.ones(4)])
    end, other = os.pipe()
    os.close(other)

    with pytest.raises(NoTensorError):
        Memory().read(told, [MemoryFile(end)])
