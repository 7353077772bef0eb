"""What judge and worker tell each other arrives as it was, and nothing else is believed."""

import json
import socket

import pytest
import torch

from runner.verify.guard.shared_memory import Memory, NotToldError
from runner.verify.guard.wire_format import (
    Channel,
    ConnectionLostError,
    decode,
    encode,
    put_tensor,
    tensor_at,
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


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\0" * 4,
        (9).to_bytes(8, "big") + bytes(8) + b"not json!",
        (1 << 60).to_bytes(8, "big") + bytes(8),
        (2).to_bytes(8, "big") + (1 << 60).to_bytes(8, "big"),
        (2).to_bytes(8, "big") + (1).to_bytes(8, "big") + b"f{}",
    ],
    ids=["nothing", "cut short", "no JSON", "too long", "too many files", "a file is missing"],
)
def test_bytes_that_are_no_message_end_the_connection(sent):
    mine, its = socket.socketpair()
    its.sendall(sent)
    its.close()

    with pytest.raises(ConnectionLostError):
        Channel(mine).receive()


def test_files_go_with_a_message():
    mine, its = (Channel(end) for end in socket.socketpair())
    held = [torch.arange(20_000.0) + n for n in range(100)]
    told, blocks = Memory().write(held)
    blocks = blocks * 70  # more than go over a socket at once

    mine.send({"tensors": told}, blocks)
    message, files = its.receive()

    assert len(files) == 70
    assert all(map(torch.equal, Memory().read(message["tensors"], files), held))


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
