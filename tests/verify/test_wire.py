"""What judge and worker tell each other arrives as it was, and nothing else is believed."""

import json
import socket

import pytest
import torch

from runner.verify.wire import (
    Channel,
    ConnectionLostError,
    NotToldError,
    decode,
    encode,
    put_tensor,
    read_tensors,
    tensor_at,
    write_tensors,
)

VALUES = {
    "numbers": [1, 2.5, True, None, "text", -3],
    "not finite": (float("inf"), float("-inf")),
    "a complex number": 1 - 2j,
    "nested": {"a": (1, [2, (3,)]), 4: []},
    "an index": (slice(1, None, 2), ..., None),
    "a shape": torch.Size([2, 3]),
    "of torch": [torch.bfloat16, torch.device("cpu"), torch.strided, torch.channels_last],
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_values_arrive_as_they_were(value):
    told = json.loads(json.dumps(encode(value, lambda tensor: 0)))

    assert decode(told, lambda number: None) == value


@pytest.mark.parametrize("value", [object(), print, {1, 2}, b"bytes"])
def test_what_is_no_value_is_not_told(value):
    with pytest.raises(NotToldError):
        encode([value], lambda tensor: 0)


def test_a_generator_goes_on_with_the_numbers_that_it_would_have_given():
    generator = torch.Generator().manual_seed(3)
    told = json.loads(json.dumps(encode(generator, lambda tensor: 0)))

    again = decode(told, lambda number: None)

    assert torch.equal(torch.rand(4, generator=again), torch.rand(4, generator=generator))


@pytest.mark.parametrize(
    "told", [{"k": "load"}, {"k": "ops"}, {"x": 1}, {"t": 0, "u": []}, {}, [{"k": "nothing"}]]
)
def test_what_is_no_message_of_a_worker_is_refused(told):
    with pytest.raises(ConnectionLostError):
        decode(told, lambda number: None)


def test_tensors_arrive_with_their_strides_and_the_memory_that_they_share(tmp_path):
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

    read = read_tensors(tmp_path / "file", write_tensors(tmp_path / "file", tensors))

    assert all(map(torch.equal, tensors, read))
    assert [t.stride() for t in read] == [t.stride() for t in tensors]
    assert isinstance(read[5], torch.nn.Parameter)
    read[1][0, 1] = 99
    assert read[2][0, 0] == 99
    assert whole[0, 1] == 1


def test_a_tensor_without_values_is_told_by_its_shape(tmp_path):
    told = write_tensors(tmp_path / "file", [torch.empty(5, 2, device="meta")])

    (read,) = read_tensors(tmp_path / "file", told)

    assert read.is_meta
    assert read.shape == (5, 2)


@pytest.mark.parametrize(
    "change", [{"at": 1 << 40}, {"bytes": 1 << 20}, {"dtype": "load"}, {"dtype": 3}, {"shape": "x"}]
)
def test_a_tensor_that_does_not_lie_in_its_file_is_refused(tmp_path, change):
    told = write_tensors(tmp_path / "file", [torch.ones(4)])
    told[0] |= change

    with pytest.raises(ConnectionLostError):
        read_tensors(tmp_path / "file", told)


@pytest.mark.parametrize(
    "sent", [b"", b"\0" * 4, (9).to_bytes(8, "big") + b"not json!", (1 << 60).to_bytes(8, "big")]
)
def test_bytes_that_are_no_message_end_the_connection(sent):
    mine, its = socket.socketpair()
    its.sendall(sent)
    its.close()

    with pytest.raises(ConnectionLostError):
        Channel(mine).receive()


def test_a_tensor_of_a_model_is_found_and_replaced_where_it_is():
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(3))
    model[0].tables = {"sizes": [torch.zeros(2)]}
    places = [
        ["parameter", "0.weight"],
        ["buffer", "0.running_mean"],
        ["plain", "0", "tables", "sizes", "0"],
    ]

    for place in places:
        before = tensor_at(model, place)
        put_tensor(model, place, torch.full_like(before, 7))
        assert tensor_at(model, place) is before
        assert bool((before == 7).all())
