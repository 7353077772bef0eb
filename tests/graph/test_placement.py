"""Which device each tensor of a forward is made on, as its author wrote it."""

import pytest
import torch
from programs import Program

from runner.graph import Graph, placement
from runner.graph.ir import CPU, DEVICE
from runner.graph.tracing.operator_recording import RecordingError


def places(graph: Graph) -> list[tuple[str, str]]:
    """Each operation that names a device: the operator and `device` or `cpu`."""
    said = {DEVICE: "device", CPU: "cpu"}
    return [
        (op.name, said[place])
        for op in graph.operations
        if (place := op.arg("device")) in said  # type: ignore[comparison-overlap]
    ]


@pytest.mark.parametrize(
    ("forward", "expected"),
    {
        "made there": ("return x + torch.arange(8, device=x.device)", [("arange", "device")]),
        "made where a weight is": (
            "return x + torch.ones(8, device=self.up.weight.device)",
            [("ones", "device")],
        ),
        "made on the CPU and moved": (
            "return x + torch.ones(8).to(x.device)",
            [("to", "device")],
        ),
        "moved with its type": ("return x + torch.ones(8).type_as(x)", [("to", "device")]),
        "moved and cast": (
            "return x + torch.arange(8).to(x.device, torch.float64)",
            [("to", "device")],
        ),
        "made of numbers": (
            "return x + torch.tensor([1.0] * 8, device=x.device)",
            [("to", "device")],
        ),
        "made of one number": (
            "return x + torch.tensor(0.5, device=x.device)",
            [("to", "device")],
        ),
        "read as a number": (
            "mask = torch.ones(4, device=x.device)\n"
            "return x + torch.arange(8, device=x.device) if mask.sum() == 4 else x",
            [("arange", "device")],
        ),
        "made of no number": (
            "return torch.cat([x, torch.tensor([], device=x.device), x])",
            [("to", "device")],
        ),
        "the end of a chain on the CPU": (
            "return x.masked_fill(torch.ones(8).cumsum(0).gt(3).to(x.device), 0.0)",
            [("to", "device")],
        ),
        "an index on the CPU": ("return x[:, torch.arange(7, -1, -1)]", []),
        "after indices of every kind": (
            "return (~(x > 9))[1:, None, ..., 0::2][:, 0, [0, 1]].T.contiguous()"
            " + torch.ones(1, device=x.device)",
            [("ones", "device")],
        ),
        "after an index that takes all": (
            "return x[:, :8] + x[...] + torch.ones(8).to(x.device)",
            [("to", "device")],
        ),
        "like another": ("return x + x.new_ones(8) + torch.zeros_like(x)", []),
        "made on the CPU and written into one there": (
            "y = x.clone()\ny[0] = torch.arange(8.0)\nreturn y",
            [("to", "device")],
        ),
        "written into one on the CPU": (
            "y = torch.zeros(4, 8)\ny[0] = x[0]\nreturn y",
            [("to", "cpu")],
        ),
        "brought to the CPU": ("return x.cpu() + torch.ones(8)", [("to", "cpu")]),
        "nothing made": ("return x.to(x.device).relu()", []),
    }.values(),
)
def test_a_tensor_is_made_where_its_author_makes_it(
    program: Program, forward: str, expected: list[tuple[str, str]]
) -> None:
    graph = program(forward, init="self.up = nn.Linear(8, 8)")
    assert places(graph) == expected
    assert all("made on the CPU, and" in note for note in graph.notes)


def test_a_table_in_a_plain_attribute_is_moved_as_its_author_moves_it(program: Program) -> None:
    graph = program("return x + self.table.to(x.device)", init="self.table = torch.arange(8)")
    assert places(graph) == [("to", "device")]
    assert graph.capture == "fake"


def test_what_is_written_into_a_tensor_on_the_cpu_stays_there(program: Program) -> None:
    written = "table = torch.zeros(8)\ntable[2:] = torch.ones(6)\n"
    graph = program(f"{written}return x + table.to(x.device)")
    (scatter,) = [op for op in graph.operations if op.name == "slice_scatter"]
    assert graph.on_cpu.issuperset(scatter.outputs)
    assert places(graph) == [("to", "device")]


def test_what_stays_on_the_cpu_on_purpose_is_a_note(program: Program) -> None:
    graph = program("return x[:, torch.arange(7, -1, -1)]")
    (note,) = graph.notes
    assert note.endswith("made on the CPU, and stays there")


def test_a_forward_that_mixes_devices_stays_as_it_is_and_is_a_note(program: Program) -> None:
    graph = program("return x + torch.arange(8)")
    assert places(graph) == []
    (note,) = graph.notes
    assert note.startswith("does not run on a device: line ")


def test_where_it_cannot_be_shown_a_tensor_is_made_on_the_device(program: Program) -> None:
    forward = "n = int(x.abs().sum() > 0)\nreturn x * n + torch.arange(8, device=x.device)"
    assert ("arange", "device") in places(program(forward))


def test_a_value_may_be_read_on_both_sides(program: Program) -> None:
    graph = program("y = x.exp()\nreturn y.relu(), y.cpu().mean()")
    relu = next(op for op in graph.operations if op.name == "relu")
    mean = next(op for op in graph.operations if op.name == "mean")
    assert [*relu.refs()] == ["exp"]
    assert [*mean.refs()] != ["exp"]


def test_a_forward_that_computes_something_else_there_is_a_note(program: Program) -> None:
    graph = program("return x.tanh() if x.device.type == 'cpu' else x.sigmoid()")
    assert graph.notes == ("computes something else on a device than on the CPU",)


def test_a_cast_on_the_cpu_alone_is_something_else(program: Program) -> None:
    graph = program("x = x.double() if x.device.type == 'cpu' else x\nreturn x.sin().float()")
    assert "computes something else on a device than on the CPU" in graph.notes


@pytest.mark.parametrize(
    ("init", "forward"),
    {
        "an object": (
            "self.held = types.SimpleNamespace(table=torch.arange(8))",
            "self.held.table",
        ),
        "a cache of the module": ("pass", "CACHE.setdefault(8, torch.arange(8, device=x.device))"),
    }.values(),
)
def test_a_table_outside_of_modules_is_where_its_author_has_it(
    program: Program, init: str, forward: str
) -> None:
    graph = program(
        f"return x + {forward}.to(x.device)", init=init, classes="import types\nCACHE = {}"
    )
    assert not [note for note in graph.notes if "device" in note]


@pytest.mark.parametrize("place", ["[0, 2]", ":, [0, 2]", "[True, False, True, True]"])
def test_a_list_of_numbers_is_an_index_as_torch_takes_it(program: Program, place: str) -> None:
    graph = program(f"return x[{place}]")
    (name,) = graph.output_names()
    expected = eval(f"x[{place}]", {"x": torch.zeros(4, 8)})
    assert graph.values[name].shape == tuple(expected.shape)


def test_a_list_of_lists_means_what_torch_says(program: Program) -> None:
    graph = program("return x[:, [[0, 2], [1, 3]]]")
    (name,) = graph.output_names()
    assert graph.values[name].shape == tuple(torch.zeros(4, 8)[:, [[0, 2], [1, 3]]].shape)


ATTENDED = "q = x.view(2, 4, 4, 2)\ny = F.scaled_dot_product_attention(q, q, q)\n"


@pytest.mark.parametrize(
    "merged",
    ["y.transpose(1, 2).contiguous().view(2, 4, 8)", "y.transpose(1, 2).reshape(2, 4, 8)"],
)
def test_a_copy_that_only_another_device_makes_is_kept(program: Program, merged: str) -> None:
    graph = program(f"{ATTENDED}return {merged}", inputs="torch.randn(2, 32)")
    copies = [op.name for op in graph.operations if op.name in {"contiguous", "reshape"}]
    assert len(copies) == 1
    assert not [op for op in graph.operations if op.name in copies and op.view]


def test_a_copy_that_only_the_cpu_makes_is_kept(program: Program) -> None:
    graph = program(
        "image = x.to(x.device).transpose(1, 2).view(2, 8, 4, 4)\n"
        "return self.conv(image).contiguous()",
        init="self.conv = nn.Conv2d(8, 8, 3)",
        inputs="torch.randn(2, 16, 8)",
    )
    assert "contiguous" in [op.name for op in graph.operations]
    assert not graph.notes


def test_a_note_names_no_address(program: Program) -> None:
    graph = program(
        "if x.device.type != 'cpu':\n"
        "    raise RuntimeError(f'no kernel for {object()}')\n"
        "return x + 1"
    )
    assert any(note.startswith("not shown to run on a device: ") for note in graph.notes)
    assert not any("0x" in note for note in graph.notes)


def test_what_a_library_says_in_its_own_words_is_traced_again(program: Program) -> None:
    graph = program(
        """
        try:
            zero = torch.tensor(0.0, device=x.device).reshape(1, 1)
        except NotImplementedError as error:
            raise RuntimeError("this function failed") from error
        return torch.where(x > 0, x, zero)
        """
    )
    assert places(graph) == [("to", "device")]


def test_a_state_in_a_plain_attribute_may_move_to_the_device(program: Program) -> None:
    graph = program(
        "self.held.copy_(x)\nself.held = self.held.to(x.device)\nreturn x + self.held",
        init="self.held = torch.randn(4, 8)",
    )
    assert graph.capture == "fake"
    assert not any("device" in note for note in graph.notes)


def refuse(*args: object) -> None:
    raise RecordingError("not this way")


@pytest.mark.parametrize(
    "forward",
    {
        "a move": "return x + torch.ones(8).to(x.device)",
        "a table of numbers": "return x + torch.tensor([1.0] * 8, device=x.device).mul(2)",
        "a number that is read": (
            "steps = torch.arange(8, device=x.device)\nreturn x * 2 if steps.max() == 7 else x"
        ),
        "a loop over parts": (
            "first, second = x.split(4, 1)\n"
            "return torch.cat([first, second.to(x.device)], 1), x.max(1).values"
        ),
        "a table that is filled": (
            "table = torch.zeros(8, device=x.device)\ntable[2:] = 1.0\nreturn x + table"
        ),
        "a copy in each of two calls": (
            "x = x.view(2, 4, 4, 1)\nreturn self.attend(self.attend(x)) + x.new_ones(1)"
        ),
        "a layer with a state": "return self.cell(x + torch.ones(8, device=x.device))[0]",
    }.values(),
)
def test_operators_recorded_on_a_device_tell_what_a_second_trace_tells(
    program: Program, monkeypatch: pytest.MonkeyPatch, forward: str
) -> None:
    def capture() -> Graph:
        return program(
            forward,
            init="self.attend = Attend()\nself.cell = nn.GRU(8, 8)",
            classes="""
class Attend(nn.Module):
    def forward(self, x):
        y = F.scaled_dot_product_attention(x, x, x)
        return y.transpose(1, 2).contiguous().view(2, 4, 4, 1)
""",
        )

    with monkeypatch.context() as without_trace:
        without_trace.setattr(placement, "export", refuse)
        recorded = capture()
    monkeypatch.setattr(placement, "record_operators", refuse)
    assert recorded == capture()


def test_a_program_that_a_recorder_cannot_follow_is_traced_again(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = "y = x + torch.ones(8, device=x.device)\ny.unsqueeze_(0)\nreturn y * 2"
    graph = program(forward)
    assert places(graph) == [("ones", "device")]
    monkeypatch.setattr(placement, "export", refuse)
    assert any("not shown to run on a device" in note for note in program(forward).notes)


def test_values_that_only_a_library_checks_make_no_other_program(program: Program) -> None:
    graph = program(
        "level = torch.tensor(0.9, device=x.device)\n"
        "return x * torch.distributions.Normal(0, 1).icdf(level)"
    )
    assert ("to", "device") in places(graph)
    assert not any("device" in note for note in graph.notes)
