"""A component that is right on the CPU and something else on another device is told."""

import pytest
from attacks import WRONG, Attacks, assert_caught
from changing_files import RELU, RIGHT, at_import, in_forward
from decompositions import conv_relu
from decompositions_of_expressions import lone
from verdicts import assert_passes

from runner.verify import VerifyOptions
from runner.verify.findings import Findings
from runner.verify.gates.device import DeviceGate
from runner.verify.layout import read_layout
from runner.verify.loading_files import Files
from runner.verify.runtime.runner import ForwardRunner

pytestmark = pytest.mark.long

CPU = "torch.device('cpu')"
DECIDING = Attacks()


def right_if(made, condition: str, top: str = "") -> None:
    if top:
        at_import(made, top)
    in_forward(made, f"if {condition}:\n    {RIGHT}\n{WRONG}")


@DECIDING.blame(RELU)
def asks_in_a_loop(made):
    in_forward(made, f"for d in [x.device]:\n    if d == {CPU}:\n        {RIGHT}\n{WRONG}")


@DECIDING.blame(RELU)
def asks_in_a_function(made):
    right_if(made, "here(x.device)", f"def here(d):\n    return d == {CPU}")


@DECIDING.blame(RELU)
def asks_a_dict(made):
    right_if(made, "len(table) == 1", "")
    made.edit_everywhere(
        "relu.py", "        if len", "        table = {x.device: 1}\n        if len"
    )
    made.edit_everywhere("relu.py", "{x.device: 1}", f"{{x.device: 1, {CPU}: 2}}")


@DECIDING.blame(RELU)
def counts_devices(made):
    top = "from collections import Counter"
    right_if(made, f"len(Counter([x.device, {CPU}])) == 1", top)


@DECIDING.blame(RELU)
def compares_with_an_operator(made):
    right_if(made, f"operator.eq(x.device, {CPU})", "import operator")


@DECIDING.blame(RELU)
def has_another_name_for_a_device(made):
    text = "D = torch.device\n\n\ndef here(d):\n    return d == D('cpu')"
    right_if(made, "here(x.device)", text)


@DECIDING.blame(RELU)
def compares_with_the_device_of_a_new_tensor(made):
    text = "def same(a, b):\n    return a == b"
    right_if(made, "same(x.device, torch.zeros(1).device)", text)


@pytest.mark.parametrize("attack", DECIDING, ids=str)
def test_it_is_caught(attack, tmp_path, judged):
    assert_caught(judged(attack.on(tmp_path), trials=1), attack)


OTHER_CALLS = {
    "one call more": (WRONG, "calls mul(tensor 1, 1.5) on"),
    "another number": (
        "return F.leaky_relu(x, 0.5)",
        "calls leaky_relu(tensor 0, negative_slope, 0.5",
    ),
    "no call": ("return x", "calls nothing on"),
}


@pytest.mark.parametrize("name", OTHER_CALLS)
def test_the_calls_on_a_simulated_device_are_those_on_the_cpu(name, tmp_path):
    wrong, message = OTHER_CALLS[name]
    made = conv_relu(tmp_path / "made")
    in_forward(made, f"if x.is_cpu:\n    {RIGHT}\n{wrong}")
    findings = Findings(lambda gate: None)
    runner = ForwardRunner(made.directory, VerifyOptions())

    with Files(made.directory) as files:
        layout = read_layout(made.directory)
        DeviceGate(files, layout, runner, findings, compares_calls=True).judge()

    reasons = {check.component: check.reason for check in findings.checks("device")}
    assert message in (reasons[RELU] or "")


HONEST = {
    "a table on the device of the input": "x + torch.arange(16, device=x.device)",
    "a device by name": "x + torch.arange(16, dtype=x.dtype, device=x.device)",
    "a buffer": "x + self.m.to(x.device)",
}


@pytest.mark.parametrize("name", HONEST)
def test_a_device_may_be_given_to_an_operation(name, tmp_path, judged):
    options = {}
    if "self.m" in HONEST[name]:
        buffer = "self.register_buffer('m', torch.arange(16.0))"
        options = {"init": buffer, "weights": ("m",)}

    assert_passes(judged(lone(tmp_path / "made", HONEST[name], **options), trials=1))


def test_inputs_may_be_drawn_on_a_device_by_name(fusion, judged):
    drawn = "torch.randn(2, 4, 6, 6"
    fusion.edit_everywhere("relu.py", f"{drawn})", f"{drawn}, device=torch.device('cpu'))")

    assert_passes(judged(fusion, trials=1))
