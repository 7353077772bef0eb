"""Every file runs where its inputs are: shown on a device that is not the CPU, without one."""

import random

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from runner.problems.fake_execution import FakeTensors, move_model
from runner.problems.simulated_device import simulated_device
from runner.verify import VerifyOptions
from runner.verify.findings import Findings
from runner.verify.gates.device import DeviceGate, ShapeOnlyMode
from runner.verify.layout import read_layout
from runner.verify.loading_files import Files
from runner.verify.runtime.output_leaves import tensors
from runner.verify.runtime.runner import ForwardRunner, disable_fused_paths

pytestmark = pytest.mark.long

IN_THIS_PROCESS = True

KERNEL, STEP = "level_0_kernel/relu.py", "steps/step_1_conv_relu_to_kernel/refactored.py"


@pytest.fixture
def on_device(fusion, judged, complaints):
    """What the gate says against each file of the fusion, and everything that it notes."""

    def judge(**options):
        verification = judged(fusion, **options)
        return complaints(verification, "device"), verification

    return judge


def test_a_file_that_makes_a_tensor_on_the_cpu_is_caught_with_its_line(fusion, on_device):
    fusion.edit_everywhere(
        "relu.py", "return F.relu(x)", "y = torch.zeros(6)\n        return x + y"
    )

    said, verification = on_device()

    line = next(n for n, text in enumerate(fusion.read(KERNEL).split("\n"), 1) if "zeros" in text)
    assert said[KERNEL] == (
        f"failed: line {line} makes a tensor on cpu and line {line + 1} mixes it with one on"
        " accel:0: give it the device of what it meets, as in device=x.device"
    )
    assert f"line {line} of {KERNEL} makes a tensor on cpu" in said[STEP]
    assert verification.status == "failed"


def test_a_file_that_takes_the_device_of_its_input_passes(fusion, on_device):
    fusion.edit_everywhere(
        "relu.py", "return F.relu(x)", "return x.relu() + torch.zeros(6, device=x.device)"
    )

    said, verification = on_device()

    assert said == {}
    assert verification.gate("device").verdict == "passed"


def test_a_parent_that_makes_a_tensor_on_the_cpu_is_caught_with_its_line(fusion, on_device):
    fusion.edit(STEP, "return self.relu(x)", "return self.relu(x + torch.zeros(6))")

    said, _ = on_device()

    line = next(n for n, text in enumerate(fusion.read(STEP).split("\n"), 1) if "zeros" in text)
    assert said[STEP].startswith(f"failed: line {line} makes a tensor on cpu and mixes it")
    assert set(said) == {STEP}


def test_an_output_that_stays_on_the_cpu_is_caught_where_it_is_used(fusion, on_device):
    stays = "return torch.zeros(2, 4, 6, 6)"
    fusion.edit_everywhere("relu.py", "return F.relu(x)", stays)

    said, _ = on_device()

    assert "output[0] is on cpu, that of level_1_fusion/conv_relu.py on accel" in said[STEP]
    assert f"of {KERNEL} makes it" in said[STEP]
    assert "that of original.py on accel" in said["verification/composition_test.py"]


def test_a_view_that_needs_a_layout_of_the_cpus_is_caught(softmax, judged, complaints):
    attention = "y = F.scaled_dot_product_attention(x, x, x).transpose(1, 2)"
    for path in ("original.py", "level_0_kernel/softmax_4x16_fp32.py"):
        softmax.edit(path, "torch.rand(4, 16)", "torch.rand(2, 4, 8, 16)")
    softmax.edit(
        "original.py",
        "from torch import nn",
        "import torch.nn.functional as F\nfrom torch import nn",
    )
    forward = "return torch.softmax(x, dim=1)"
    softmax.edit("original.py", forward, f"{attention}\n        return y.reshape(2, 8, 64)")
    kernel = "level_0_kernel/softmax_4x16_fp32.py"
    softmax.edit(kernel, forward, f"{attention}\n        return y.view(2, 8, 64)")

    said = complaints(judged(softmax), "device")

    assert ".view() of a tensor with strides" in said[kernel]
    assert "call .contiguous() before it, or .reshape() instead" in said[kernel]


def test_an_original_that_mixes_devices_is_told_and_fails_nothing(fusion, on_device):
    mixed = "return self.relu(self.conv(x)) + torch.zeros(6)"
    fusion.edit("original.py", "return self.relu(self.conv(x))", mixed)
    fusion.edit_everywhere("relu.py", "return F.relu(x)", "return F.relu(x) + torch.zeros(6)")

    said, verification = on_device()

    assert said == {}
    assert verification.gate("device").verdict == "nothing_to_check"
    (note,) = [note for note in verification.health if "device" in note]
    assert note.startswith(
        "not judged on a device that is not the CPU: original.py itself does not run on one: line"
    )


def test_weights_that_are_loaded_as_real_ones_are_moved(fusion, on_device):
    made = "super().__init__()"
    loaded = "torch.frombuffer(bytearray(24), dtype=torch.float32)"
    fusion.edit("original.py", made, f"{made}\n        self.loaded = nn.Parameter({loaded})")

    _, verification = on_device()

    assert [note for note in verification.health if "device" in note] == []
    assert verification.gate("device").verdict == "passed"


def test_an_original_that_reads_values_is_told_and_fails_nothing(fusion, on_device):
    reads = "return self.relu(self.conv(x)) * float(x.sum() * 0 + 1)"
    fusion.edit("original.py", "return self.relu(self.conv(x))", reads)

    said, verification = on_device()

    assert said == {}
    (note,) = [note for note in verification.health if "device" in note]
    assert note.startswith(
        "not judged on a device that is not the CPU: original.py cannot be run on shapes alone,"
        " since it reads values"
    )
    assert note.endswith("(original.py:15)")


def test_a_file_that_reads_values_fails_where_its_original_reads_none(fusion, on_device):
    reads = "return F.relu(x) * float(x.sum() * 0 + 1)"
    fusion.edit_everywhere("relu.py", "return F.relu(x)", reads)

    said, verification = on_device()

    assert KERNEL in said
    assert "cannot be run on shapes alone, since it reads values" in said[KERNEL]
    assert said[KERNEL].endswith("; original.py can be")
    assert verification.gate("device").verdict == "failed"


def test_what_the_simulated_device_lacks_is_told_and_fails_nothing(fusion, on_device):
    draws = "noise = torch.Generator(device=x.device)\n        return self.relu(self.conv(x))"
    fusion.edit("original.py", "return self.relu(self.conv(x))", draws)

    said, verification = on_device()

    assert said == {}
    (note,) = [note for note in verification.health if "device" in note]
    assert note.startswith("not judged on a device that is not the CPU: original.py ")


def test_a_program_that_looks_for_an_accelerator_finds_what_is_there():
    simulated = simulated_device()
    assert not torch.accelerator.is_available()
    # CUDA's build of torch names CUDA where there is no GPU, too.
    assert torch.accelerator.current_accelerator() != torch.device(simulated.type)


def test_a_model_whose_init_reads_values_is_judged(fusion, on_device):
    reads = "super().__init__()\n        rate = torch.linspace(0, 1, 3)[1].item()"
    fusion.edit("original.py", "super().__init__()", reads)
    fusion.edit_everywhere("relu.py", "super().__init__()", reads)

    _, verification = on_device()

    assert verification.gate("device").verdict == "passed"
    assert not [note for note in verification.health if "device" in note]


def test_scalars_and_indices_on_the_cpu_may_meet_a_device(fusion, on_device):
    meets = "return (F.relu(x) + torch.tensor(0.0))[torch.arange(2)]"
    fusion.edit_everywhere("relu.py", "return F.relu(x)", meets)

    said, _ = on_device()

    assert said == {}


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_recurrent_layer_is_not_unrolled(layer):
    """It would be 512 steps, and take seconds."""
    fake, device = FakeTensors(), simulated_device()
    with fake, torch.no_grad(), ShapeOnlyMode(), Counting() as counting:
        model, sequence = layer(16, 8, 2, bidirectional=True), torch.empty(512, 2, 16)
        on_cpu = model(sequence)
        move_model(model, fake, device)
        moved = model(sequence.to(device))
        with pytest.raises(RuntimeError, match="device"):
            model(sequence)

    assert [t.shape for t in tensors(moved)] == [t.shape for t in tensors(on_cpu)]
    assert {t.device for t in tensors(moved)} == {device}
    assert counting.operations < 200


class Counting(TorchDispatchMode):
    """How many operations run."""

    operations = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operations += 1
        return func(*args, **(kwargs or {}))


def test_the_gate_leaves_no_mode(fusion, judged):
    fusion.edit_everywhere(
        "relu.py",
        "return F.relu(x)",
        "if x.device.type != 'cpu':\n"
        "            torch.device('meta').__enter__()\n"
        "        return F.relu(x)",
    )
    verification = judged(fusion)

    assert torch.ones(1).device.type == "cpu"
    assert torch.overrides._len_torch_function_stack() == 0
    assert verification.gate("device").verdict != "passed"


def test_a_moved_model_keeps_shared_parameters_and_lists_of_them():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(3, 3), nn.Linear(3, 3)
            self.two.weight = self.one.weight
            self.weights = [self.one.weight]
            self.table = torch.zeros(3)
            self.register_buffer("mean", torch.zeros(3))

    fake = FakeTensors()
    with fake:
        model = Tied()

    move_model(model, fake, simulated_device())

    assert model.two.weight is model.one.weight is model.weights[0]
    assert {p.device.type for p in model.parameters()} == {"accel"}
    assert (model.mean.device.type, model.table.device.type) == ("accel", "cpu")


def test_every_file_of_the_samples_runs_where_its_inputs_are(decomposed_samples):
    faults = []
    for directory in sorted(decomposed_samples.glob("level*/*")):
        findings = judged_alone(directory)
        gate = findings.build_verification(VerifyOptions(), torch.__version__).gate("device")
        where = directory.relative_to(decomposed_samples)
        faults += [f"{where}: {note}" for note in findings.health]
        faults += [
            f"{where}/{check.component}: {check.reason}" for check in gate.checks if check.reason
        ]

    assert not faults, "\n".join(faults)


def judged_alone(directory):
    """What the device gate says of a directory, without the other gates."""
    findings, bench = Findings(lambda gate: None), ForwardRunner(directory, VerifyOptions())
    simulated_device()
    torch.manual_seed(3)
    before, in_python = torch.get_rng_state(), random.getstate()
    with (
        disable_fused_paths(),
        Files(directory) as files,
    ):
        DeviceGate(files, read_layout(directory), bench, findings).judge()
    assert torch.equal(torch.get_rng_state(), before)
    assert random.getstate() == in_python
    return findings
