"""What a child does with the simulated accelerator; each function answers in JSON."""

import json

import torch
from torch import nn

from runner.verify.gates.compare import STEP, are_identical, compare
from runner.verify.runtime.arithmetic import exact_arithmetic
from runner.verify.runtime.disk_cache import DiskCache
from runner.verify.runtime.generators import generator_states, set_generators
from runner.verify.runtime.input_moves import move_inputs


def mix(_: str) -> str:
    """Add to a tensor of the device: one of the CPU, a number of the CPU, one of the device."""
    here, said = torch.ones(2, device="accel"), []
    for other in (torch.ones(2), torch.tensor(2.0), torch.ones(2, device="accel")):
        try:
            said.append((here + other).tolist())
        except RuntimeError as error:
            said.append(str(error).partition(",")[0])
    return json.dumps(said)


def share(_: str) -> str:
    """Write through a view; tie two weights, move them, and compute their gradient."""
    whole = torch.zeros(4, 4, device="accel")
    part = whole[1:, ::2]
    part += 1
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    model.to("accel")
    model(whole).sum().backward()
    return json.dumps(
        {
            "sum": whole.sum().item(),
            "one version": whole._version == part._version > 0,
            "tied": model[0].weight is model[1].weight,
            "gradient": str(model[0].weight.grad.device),
        }
    )


def allocate(_: str) -> str:
    """Take 1 MiB of the device twice, one after the other, and then all of it."""
    said = []
    for mib in (1, 1, 1 << 10):
        try:
            torch.empty(mib << 20, dtype=torch.uint8, device="accel")
        except torch.OutOfMemoryError as error:
            said.append(str(error))
        memory = torch.accel.memory_allocated(), torch.accel.max_memory_allocated()
        said.append([size >> 20 for size in memory])
    return json.dumps(said)


def draw_again(_: str) -> str:
    """Draw on the CPU and on the device, set the generators back, and draw again."""

    def drawn() -> list[float]:
        return [torch.rand(()).item(), torch.rand((), device="accel").item()]

    torch.manual_seed(7)
    seeded = drawn()
    states = generator_states("accel")
    first = drawn()
    set_generators("accel", states)
    again = drawn()
    torch.manual_seed(7)
    return json.dumps([first == again, seeded == drawn(), seeded != first])


def move(_: str) -> str:
    """Move inputs that are expanded, sliced, and share their memory."""
    whole = torch.arange(12.0).reshape(3, 4)
    inputs = ((whole[:, ::2], whole[1].expand(5, 4)), {"whole": [whole], "n": 3})
    (part, wide), keywords = move_inputs(inputs, "accel")
    before = [part.cpu().tolist() == whole[:, ::2].tolist(), part.stride(), wide.stride()]
    keywords["whole"][0].zero_()
    return json.dumps([*before, part.sum().item(), wide.sum().item(), str(wide.device)])


def compare_across(_: str) -> str:
    """Compare the device's values with the CPU's, with those on disk, and with wrong ones."""
    here = torch.arange(6.0).reshape(2, 3)
    there = here.to("accel")
    wrong = there.clone()
    wrong[1, 2] += 1
    with DiskCache(min_bytes=1) as spill, spill.storing_values():
        kept = spill.store(there)
        told = {
            "across": compare(here, there, STEP).bitwise_equal,
            "identical": are_identical(there, here),
            "on disk": compare(kept, there, STEP).bitwise_equal,
            "back": str(spill.load(kept).device),
            "wrong": compare(here, wrong, STEP).reason,
        }
    with DiskCache(min_bytes=1) as spill:
        told["digests"] = compare(spill.store(there), there, STEP).bitwise_equal
    return json.dumps(told)


def compute_exactly(_: str) -> str:
    """Ask for deterministic algorithms while two sides are compared, and as before afterwards."""
    said = []
    with exact_arithmetic("accel"):
        said.append(torch.are_deterministic_algorithms_enabled())
    return json.dumps([*said, torch.are_deterministic_algorithms_enabled()])
