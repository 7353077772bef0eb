"""How much memory a forward takes, against figures worked out by hand, and against PyTorch."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from programs import Program, Write

from runner.graph import Graph, normalize
from runner.graph.peak_memory import Peak, estimate_graph, estimate_peak
from runner.graph.tracing.capture import capture
from runner.graph.workspace_memory import estimate_workspace

pytestmark = pytest.mark.long


def scratch_of(graph: Graph) -> tuple[int, int]:
    """Resident and allocated, of the program's one operation that takes any."""
    taken = [estimate_workspace(op, graph.values) for op in graph.operations]
    (found,) = [each for each in taken if each.allocated_bytes]
    return found.resident_bytes, found.allocated_bytes


def test_the_peak_is_where_most_is_alive(program: Program) -> None:
    # x (128 B) always; exp, then exp and its view with abs: 3 x 128; exp is gone when neg is made
    graph = program("y = x.exp().view(8, 4).abs()\nreturn y.neg()")
    assert estimate_peak(graph).resident_bytes == 3 * 128


def test_what_is_returned_and_what_is_owned_stays_alive(program: Program) -> None:
    graph = program(
        "y = x.exp()\nz = (y + self.w).abs()\nreturn y, z.neg()",
        init="self.w = nn.Parameter(torch.zeros(4, 8))",
    )
    assert estimate_peak(graph).resident_bytes == (2 + 1 + 2) * 128


def test_a_tied_weight_is_held_once(program: Program) -> None:
    init = "self.a, self.b = nn.Embedding(8, 4), nn.Linear(4, 8, bias=False)\n"
    graph = program(
        "return self.b(self.a(x))",
        inputs="torch.randint(0, 8, (2,))",
        init=init + "self.b.weight = self.a.weight",
    )
    assert estimate_peak(graph).resident_bytes == 2 * 8 + 8 * 4 * 4 + 2 * 4 * 4 + 2 * 8 * 4


def test_a_result_that_nothing_reads_is_freed_at_once(program: Program) -> None:
    assert estimate_peak(program("x.exp()\nx.abs()\nreturn x.neg()")).resident_bytes == 2 * 128


@pytest.mark.parametrize(
    ("forward", "tensors"),
    [
        ("return x.exp().abs().neg()", 3),
        ("a = x.exp()\nb = a.abs()\nreturn b.neg()", 4),
        ("y = x.exp()\ny = y.abs()\nreturn y.neg()", 3),
    ],
    ids=["no names", "a name for each", "one name for all"],
)
def test_a_name_holds_what_it_was_given_until_it_is_given_something_else(
    forward: str, tensors: int, program: Program
) -> None:
    assert estimate_peak(program(forward)).resident_bytes == tensors * 128


def test_names_of_a_module_s_forward_are_gone_when_it_returns(program: Program) -> None:
    held = """
    class Held(nn.Module):
        def forward(self, y):
            a = y.abs()
            b = a.neg()
            return b.exp()
    """
    graph = program(
        "x = self.one(x)\nx = self.two(x)\nreturn x",
        classes=held,
        init="self.one, self.two = Held(), Held()",
    )
    assert estimate_peak(graph).resident_bytes == 5 * 128  # x, what two is given, and its own three


def test_a_program_that_computes_nothing_takes_its_inputs(program: Program) -> None:
    estimated = estimate_graph(program("return x"))
    assert (estimated.peak.resident_bytes, estimated.parts_bytes) == (128, 0)


def test_a_part_by_itself_holds_what_it_is_given(program: Program) -> None:
    graph = program("x = x.exp()\nx = x.abs()\nx = x.neg()\nreturn x.sin()")
    assert estimate_peak(graph).resident_bytes == 3 * 128
    assert estimate_graph(graph).parts_bytes == 3 * 128
    graph = program("return (x.sum(1) + 1).neg()")
    assert estimate_graph(graph).parts_bytes == 128 + 2 * 4 * 4


def test_inputs_that_are_drawn_and_no_more_are_not_made_twice(program: Program) -> None:
    assert estimate_graph(program("return x + 1", inputs="torch.randn(4, 8)")).drawing_bytes == 0


def test_inputs_that_took_computing_are_made_again_beside_the_first(program: Program) -> None:
    graph = program(
        "return x @ y", arguments="x, y", inputs="torch.randn(8, 8), torch.randn(8, 8).tril() * 2"
    )
    whole = 4 * 8 * 8
    assert estimate_graph(graph).drawing_bytes == 2 * whole + (1 + 3) * whole


@pytest.mark.parametrize(("cell", "operations"), [("GRU", 11), ("RNN", 3), ("LSTM", 0)])
def test_a_recurrent_layer_unrolls_to_operations_at_each_step(
    cell: str, operations: int, program: Program
) -> None:
    graph = program(
        "return self.r(x)[0]",
        init=f"self.r = nn.{cell}(8, 4, num_layers=2, bidirectional=True, batch_first=True)",
        inputs="torch.randn(2, 5, 8)",
    )
    assert estimate_graph(graph).steps == operations * 5 * 4


def test_an_operator_on_the_same_shapes_is_one_workload(program: Program) -> None:
    estimated = estimate_graph(program("return x.exp().exp().sum(1).exp()"))
    assert (estimated.operations, estimated.workloads) == (4, 3)


def test_a_caller_holds_what_it_passes_until_its_module_returns(program: Program) -> None:
    # exp goes into a module of two steps: exp, abs and neg are there at once, and x
    two = """
    class Two(nn.Module):
        def forward(self, y):
            y = y.abs()
            return y.neg()
    """
    inside = {"classes": textwrap.dedent(two), "init": "self.two = Two()"}
    assert estimate_peak(program("return self.two(x.exp())", **inside)).resident_bytes == 4 * 128
    assert estimate_peak(program("return x.exp().abs().neg()")).resident_bytes == 3 * 128


def test_a_convolution_reorders_its_input_and_its_output(program: Program) -> None:
    graph = program(
        "return self.conv(x)",
        init="self.conv = nn.Conv2d(16, 32, 3, bias=False)",
        inputs="torch.randn(1, 16, 10, 10)",
    )
    given, gives = 4 * 16 * 100, 4 * 32 * 64
    assert scratch_of(graph) == (gives, given + gives)
    weight = 4 * 32 * 16 * 9
    assert estimate_peak(graph) == Peak(given + weight + 2 * gives, 2 * given + weight + 2 * gives)


def test_the_input_of_a_convolution_with_few_channels_stays_as_it_is(program: Program) -> None:
    graph = program(
        "return self.conv(x)",
        init="self.conv = nn.Conv2d(3, 32, 3, bias=False)",
        inputs="torch.randn(1, 3, 10, 10)",
    )
    assert scratch_of(graph) == (4 * 32 * 64, 4 * 32 * 64)


def test_channels_are_filled_up_to_a_block_of_16(program: Program) -> None:
    graph = program(
        "return self.conv(x)",
        init="self.conv = nn.ConvTranspose2d(48, 24, 1, bias=False)",
        inputs="torch.randn(1, 48, 8, 8)",
    )
    given, gives, filled = 4 * 48 * 64, 4 * 24 * 64, 4 * 32 * 64
    assert scratch_of(graph) == (given + filled - gives, given + filled)


def test_channels_last_is_taken_as_it_is(program: Program) -> None:
    graph = program(
        "return self.conv(x)",
        init="self.conv = nn.Conv2d(16, 32, 3, bias=False)",
        inputs="torch.randn(1, 16, 10, 10).to(memory_format=torch.channels_last)",
    )
    assert not any(estimate_workspace(op, graph.values).allocated_bytes for op in graph.operations)


def test_both_sides_of_a_product_over_broadcast_batches_are_written_out(program: Program) -> None:
    graph = program(
        "return x @ y",
        arguments="x, y",
        inputs="torch.randn(3, 1, 4, 5), torch.randn(1, 2, 5, 6)",
    )
    written_out = 4 * 6 * (4 * 5 + 5 * 6)
    assert scratch_of(graph) == (written_out, written_out)


def test_an_estimate_computes_nothing(write: Write) -> None:
    problem = write(
        "return self.w @ x",
        init="self.w = nn.Parameter(torch.zeros(1 << 20, 1 << 20))",
        inputs="torch.randn(1 << 20, 1)",
    )
    found = estimate_graph(normalize(capture(problem)))
    assert found.peak.resident_bytes == 4 * ((1 << 40) + (2 << 20))


OPERATORS = {
    # the module, and its input's shape; malloc keeps what is below 32 MiB when it is freed
    "conv1d": ("nn.Conv1d(64, 128, 3)", (2, 64, 72000)),
    "conv2d": ("nn.Conv2d(32, 32, 3)", (4, 32, 288, 288)),
    "conv2d of 3 channels": ("nn.Conv2d(3, 64, 3)", (2, 3, 288, 288)),
    "depthwise conv2d": ("nn.Conv2d(64, 64, 3, groups=64)", (2, 64, 288, 288)),
    "conv_transpose2d": ("nn.ConvTranspose2d(64, 64, 3, bias=False)", (2, 64, 288, 288)),
    "max_pool2d": ("nn.MaxPool2d(2, 1)", (4, 32, 288, 288)),
    "batch_norm": ("nn.BatchNorm2d(32)", (4, 32, 288, 288)),
    "linear": ("nn.Linear(4096, 1024)", (4096, 4096)),
    "softmax": ("nn.Softmax(1)", (4096, 4096)),
}
MEASURE = """
import gc, json, sys
import torch
from pathlib import Path
from torch import nn

def kilobytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])

found = {}
torch.set_num_threads(1)
with torch.no_grad():
    nn.Conv2d(16, 16, 3)(torch.ones(1, 16, 8, 8))  # what the first one loads stays
    for name, (module, shape) in json.load(sys.stdin).items():
        gc.collect()
        before = kilobytes("VmRSS")
        model, x = eval(module).eval(), torch.ones(shape)
        Path("/proc/self/clear_refs").write_text("5")
        model(x)
        found[name] = (kilobytes("VmHWM") - before) << 10
        del model, x
json.dump(found, sys.stdout)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells")
@pytest.mark.skipif(
    "avx512" not in torch.backends.cpu.get_cpu_capability().lower(), reason="other layouts"
)
def test_operators_take_what_is_said_of_them(write: Write) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        input=json.dumps(OPERATORS),
        capture_output=True,
        text=True,
        check=True,
    )
    for name, taken in json.loads(done.stdout).items():
        module, shape = OPERATORS[name]
        problem = write("return self.m(x)", init=f"self.m = {module}", inputs=f"torch.ones{shape}")
        said = estimate_graph(normalize(capture(problem)))
        assert taken == pytest.approx(said.peak.resident_bytes, rel=0.1), name
