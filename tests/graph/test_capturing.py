"""Models are written down as programs: on fake tensors where possible, and honestly where not."""

import copy
from pathlib import Path

import pytest
import torch
from programs import Program, Write
from whole_problem import WHOLE

from runner.errors import CaptureError, ProblemError
from runner.graph import Graph
from runner.graph.ir import Number, Ref, Symbol
from runner.graph.tracing.capture import WeightsShortageError, capture
from runner.graph.tracing.provenance import ProvenanceRecorder, tensor_literal
from runner.graph.tracing.source_statement import is_torchs_or_kdruns
from runner.problems import read_problem
from runner.torch_internals import FakeTensorMode


def views(graph: Graph) -> dict[str, bool]:
    return {op.outputs[0]: op.view for op in graph.operations}


# --- rungs ---


def test_a_plain_model_is_captured_on_fake_tensors_however_large(program: Program) -> None:
    graph = program("return x @ x", inputs="torch.randn(1 << 20, 1 << 20)")
    assert (graph.capture, graph.specialisations) == ("fake", ())
    assert graph.values["matmul"].shape == (1 << 20, 1 << 20)


def test_tensors_that_are_written_as_numbers_need_no_other_rung(program: Program) -> None:
    graph = program(
        "return self.norm(x) * self.scale",
        init="self.norm = nn.BatchNorm1d(8)\nself.scale = nn.Parameter(torch.tensor([2.0]))",
    )
    assert graph.capture == "fake"


def test_numbers_that_are_computed_while_a_model_is_built_need_no_real_parameters(
    program: Program,
) -> None:
    graph = program(
        "for rate in self.rates:\n    x = x * (1 - rate)\nreturn x",
        init="self.rates = [r.item() for r in torch.linspace(0, 0.5, 3)]",
    )
    assert graph.capture == "fake"
    assert [op.arg("other") for op in graph.operations] == [1.0, 0.75, 0.5]


def test_sizes_that_follow_from_values_while_a_model_is_built_need_no_real_parameters(
    program: Program,
) -> None:
    graph = program(
        "for width in self.widths:\n    x = x * width\nreturn x",
        init="widths = torch.round(torch.arange(6) / 2.5)\n"
        "self.widths = torch.unique(widths)[widths.nonzero()[0].item() :].tolist()",
    )
    assert graph.capture == "fake"
    assert [op.arg("other") for op in graph.operations] == [2.0]


def test_a_random_number_that_is_read_while_a_model_is_built_gets_real_parameters(
    program: Program,
) -> None:
    graph = program("return x * self.scale", init="self.scale = torch.rand(2)[1].item()")
    assert graph.capture == "real_parameters"


def test_forward_may_read_what_depends_on_no_input_and_no_weight(program: Program) -> None:
    graph = program(
        "places = torch.arange(8).view(1, -1)\n"
        "begins_anew = (places.diff(dim=-1) != 1).any()\n"
        "return x.cos() if begins_anew else x.sin()"
    )
    assert (graph.capture, graph.specialisations) == ("fake", ())
    assert "sin" in [op.name for op in graph.operations]


def test_a_lazy_dict_of_a_package_is_not_read(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "lazy_tables"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "class Lazy(dict):\n    def __getitem__(self, key):\n        raise ImportError(key)\n"
        "TABLE = Lazy()\n"
        "def fill():\n    dict.__setitem__(TABLE, 'a', 1)\n"
    )
    monkeypatch.syspath_prepend(str(package.parent))
    problem = write("return x + 1", init="import lazy_tables\nlazy_tables.fill()")
    assert capture(problem).capture == "fake"


def test_a_table_that_an_object_keeps_of_a_trace_is_not_the_authors_error(program: Program) -> None:
    graph = program(
        "x = x + self.tables.of(8)\nreturn x.sin() if x.sum() > 0 else x.cos()",
        classes="class Tables:\n    def __init__(self):\n        self.known = {}\n"
        "    def of(self, n):\n        if n not in self.known:\n"
        "            self.known[n] = torch.arange(n) ** 0.5\n"
        "        return self.known[n] if self.known[n].sum().item() else 0\n",
        init="self.tables = Tables()",
    )
    assert graph.capture == "concrete"


def test_values_that_steer_python_are_fixed_and_said_so(
    program: Program, capfd: pytest.CaptureFixture[str]
) -> None:
    graph = program(
        "if self.w.sum() > 0:\n    return x + 1\nreturn x - 1",
        init="self.w = nn.Parameter(torch.ones(2))",
    )
    assert graph.capture == "concrete"
    assert any("values that steer Python" in note for note in graph.notes)
    assert graph.specialisations == ("line 14: a value was read as a number",)
    assert [op.name for op in graph.operations if op.outputs == graph.output_names()] == ["add"]
    assert capfd.readouterr() == ("", "")


def test_inputs_that_steer_python_are_drawn_for_a_capture_on_fake_tensors(program: Program) -> None:
    graph = program(
        "lengths = (x > 0).sum(1).tolist()\n"
        "kept = [x[i, :n] for i, n in enumerate(lengths)]\n"
        "return torch.cat(kept) if len(set(lengths)) > 1 else x + 1",
        inputs="torch.ones(4, 8).triu()",
    )
    assert graph.capture == "fake"
    assert graph.specialisations == ("line 14: a value was read as a number",)
    assert graph.values[graph.output_names()[0]].shape == (8 + 7 + 6 + 5,)


@pytest.mark.parametrize(
    ("forward", "rows"),
    [
        ("return x[mask > 0]", 5),
        ("return x[torch.nonzero(mask).flatten()]", 5),
        ("return torch.repeat_interleave(x, mask, 0)", 7),
        ("return x[torch.unique_consecutive(mask)]", 4),
        ("return x[torch.unique(mask)]", 3),
    ],
)
def test_inputs_that_decide_sizes_are_drawn_for_a_capture_on_fake_tensors(
    program: Program, forward: str, rows: int
) -> None:
    graph = program(
        forward, inputs="torch.randn(6, 8), torch.tensor([1, 0, 2, 2, 1, 1])", arguments="x, mask"
    )
    assert graph.capture == "fake"
    assert graph.values[graph.output_names()[0]].shape == (rows, 8)
    assert "values decide how much" in graph.specialisations[0]
    assert graph.observed_values["mask"] == "torch.tensor([1, 0, 2, 2, 1, 1], dtype=torch.int64)"


def test_a_model_without_a_forward_is_the_authors_mistake(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(WHOLE.replace("def forward", "def call"))
    with pytest.raises(ProblemError, match=r"Model has no forward\(\); define it"):
        capture(read_problem(tmp_path / "p.py"))


def test_a_state_that_a_concrete_trace_replaces_is_known_by_its_attribute(program: Program) -> None:
    graph = program(
        "self.total = self.total + x.sum()\nreturn x if self.total > 0 else -x",
        init="self.total = torch.zeros(())",
    )
    assert graph.capture == "concrete"
    assert [state.path for state in graph.states.values()] == ["total"]


def test_numbers_read_from_constants_specialise_nothing(program: Program) -> None:
    graph = program("mask = torch.arange(4) > 1\nreturn x if mask.all() else x.relu()")
    assert (graph.capture, graph.specialisations) == ("fake", ())
    assert [op.name for op in graph.operations] == ["relu"]


def test_a_number_that_operations_take_stays_in_the_program(program: Program) -> None:
    graph = program("return x / x.max().item()")
    assert (graph.capture, graph.specialisations) == ("fake", ())
    assert graph.operations[-1].arg("other") == Number("max_1")


def test_a_program_does_not_notice_that_it_is_traced(program: Program) -> None:
    graph = program(
        "if torch.compiler.is_compiling() or isinstance(x, torch._subclasses.FakeTensor):\n"
        "    return x.sin()\nreturn x.cos()"
    )
    assert graph.capture == "fake"
    assert [op.name for op in graph.operations] == ["cos"]
    assert torch._subclasses.FakeTensor is not None
    assert "__getattr__" not in vars(torch._subclasses)


def test_a_concrete_trace_knows_modules_and_lines_too(program: Program) -> None:
    graph = program(
        "h = self.a(x)\nif h.sum() > 1e9:\n    return h\ny = self.a(h)\nreturn y",
        init="self.a = nn.Sequential(nn.Linear(8, 8), nn.ReLU())",
    )
    assert graph.capture == "concrete"
    linear, relu, *_ = graph.operations
    assert [scope.path for scope in linear.scopes] == ["a", "a.0"]
    assert relu.origin is not None
    assert relu.origin.line == 14
    assert [s.call for op in graph.operations if op.name == "linear" for s in op.scopes] == [
        0,
        0,
        1,
        1,
    ]


def test_small_values_that_steer_are_remembered(program: Program) -> None:
    graph = program(
        "rows = torch.nonzero(self.w > -9).flatten()\nreturn x[rows]",
        init="self.w = nn.Parameter(torch.ones(4))",
    )
    assert graph.observed_values["flatten"] == "torch.tensor([0, 1, 2, 3], dtype=torch.int64)"


def test_a_seed_in_forward_goes_with_the_numbers_that_it_decides(program: Program) -> None:
    graph = program("torch.manual_seed(7)\nreturn x + torch.randn(8) + torch.rand(8)")
    seeds = [dict(op.kwargs).get("generator") for op in graph.operations if "rand" in op.name]
    assert seeds == [Symbol("torch.manual_seed(7)"), None]


def test_two_draws_from_one_generator_are_refused(write: Write) -> None:
    problem = write(
        "g = torch.Generator().manual_seed(1)\n"
        "return x + torch.randn(8, generator=g) + torch.randn(8, generator=g)"
    )
    # torch 2.9 traces no draw from a generator at all.
    with pytest.raises(CaptureError, match=r"draws twice from one|Generator'>"):
        capture(problem)


def test_sparse_tensors_are_refused(write: Write) -> None:
    with pytest.raises(CaptureError, match=r"cannot be captured: .* sparse tensor.*; give it"):
        capture(write("return torch.sparse.mm(x.to_sparse(), x.t())"))


def test_an_operator_that_calls_a_function_is_refused_by_its_name(write: Write) -> None:
    forward = """
        tripled = lambda n, x: (n + 1, x * 3)
        return while_loop(lambda n, x: n < 4, tripled, (torch.tensor(0), x))
    """
    problem = write(forward, classes="from torch._higher_order_ops import while_loop\n")
    with pytest.raises(CaptureError, match=r"forward\(\) calls while_loop \(line 17\); write"):
        capture(problem)


def test_weights_that_an_object_of_cpp_holds_are_refused_in_one_sentence(write: Write) -> None:
    init = "self.fc = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(8, 8)))"
    with pytest.raises(CaptureError, match=r"an object of C\+\+.*; keep quantised"):
        capture(write("return self.fc(x)", init=init))


def test_numbers_that_a_forward_writes_out_are_captured_as_they_were_written(
    program: Program,
) -> None:
    forward = "hundreds = torch.tensor([i * 0.37 % 1 for i in range(500)])\nreturn hundreds * x"
    graph = program(forward, inputs="torch.randn(500)")
    (table,) = (state for state in graph.states.values())
    assert table.path == "hundreds"
    assert table.literal is not None
    assert table.literal.startswith("torch.tensor([0.0, 0.37, 0.74, 0.11, 0.48,")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int64"])
def test_numbers_written_down_are_the_same_to_the_last_bit(dtype: str) -> None:
    numbers = (torch.randn(999) * 10 ** torch.randn(999)).to(getattr(torch, dtype))
    numbers[:2] = 0 if dtype == "int64" else torch.tensor([-float("inf"), -0.0])
    literal = tensor_literal(numbers, longest=999)
    assert torch.equal(eval(str(literal)), numbers)
    assert tensor_literal(numbers) is None


@pytest.mark.long
def test_too_many_numbers_are_refused_in_one_sentence_that_says_what_to_do(write: Write) -> None:
    problem = write("return torch.tensor([i / 7 for i in range(19999)])[:8] * x")
    with pytest.raises(CaptureError) as refused:
        capture(problem)
    assert str(refused.value).endswith(
        "cannot be captured: forward() makes 19,999 numbers, and not by torch's "
        "operators; make it in __init__() and keep it with register_buffer()"
    )


@pytest.mark.parametrize(
    ("on_fakes", "error", "said"),
    [
        ("raise KeyError('full')", ProblemError, "KeyError: 'full'"),
        ("torch.ones(2) @ torch.ones(3)", MemoryError, "it needs memory because RuntimeError"),
        (
            "try:\n    torch.ones(2) @ torch.ones(3)\nexcept Exception:\n    raise KeyError('a')",
            MemoryError,
            "it needs memory because KeyError",
        ),
    ],
)
def test_without_memory_for_a_real_run_the_one_on_fake_tensors_tells_what_is_wrong(
    write: Write, on_fakes: str, error: type[Exception], said: str
) -> None:
    init = f"if type(torch.empty(1)) is torch.Tensor:\n    raise MemoryError\n{on_fakes}"
    with pytest.raises(error) as raised:
        capture(write("return x", init=init))
    assert said in "".join([str(raised.value), *getattr(raised.value, "__notes__", ())])


@pytest.mark.parametrize(
    "raised",
    [
        "RuntimeError('DefaultCPUAllocator: not enough memory: out of memory')",
        "SystemError('error return without exception set')",
    ],
)
def test_however_a_shortage_is_told_it_is_one(write: Write, raised: str) -> None:
    with pytest.raises(MemoryError):
        capture(write(f"raise {raised}"))


def test_weights_that_do_not_fit_are_told_before_a_second_attempt_to_build_them(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (64 << 20, 64 << 20))
    init = "self.l = torch.nn.Linear(8, 1 << 23)"
    with pytest.raises(WeightsShortageError) as raised:
        capture(write("return x[self.l(x).sum(-1) > 0]", init=init))
    assert raised.value.needed_bytes == 4 * (8 + 1) * (1 << 23)
    assert "forward() asks for numbers that only real weights give" in raised.value.__notes__[0]


def test_a_forward_that_fails_without_a_tracer_too_is_its_authors_error_without_memory(
    write: Write,
) -> None:
    init = "if type(torch.empty(1)) is torch.Tensor:\n    raise MemoryError"
    with pytest.raises(ProblemError, match=r"RuntimeError: .*split_sizes to sum exactly to 8"):
        capture(write("a, b = x.split([3, 4], dim=-1)\nreturn a", init=init))


def test_a_model_that_fails_is_its_authors_error(write: Write) -> None:
    problem = write("y = x + 1\nreturn y @ y")
    with pytest.raises(ProblemError, match=r"RuntimeError: .*\(line \d+, in forward\)"):
        capture(problem)


def test_a_model_that_returns_no_tensor_is_its_authors_error(write: Write) -> None:
    with pytest.raises(ProblemError, match="returns no tensor"):
        capture(write("return 3"))


# --- inputs and outputs ---


def test_inputs_are_named_as_forward_names_them(program: Program) -> None:
    graph = program(
        "return left + right[0] * scale",
        arguments="left, right, scale",
        inputs="torch.randn(3), [torch.randn(3)], 2.5",
    )
    assert [given.argument.partition("_")[0] for given in graph.inputs] == ["left", "right"]
    assert graph.operations[0].args[1] == 2.5


def test_inputs_by_keyword(tmp_path: Path) -> None:
    path = tmp_path / "problem.py"
    path.write_text(
        "import torch\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, x, *, mask=None):\n"
        "        return x if mask is None else x * mask\n"
        "def get_inputs():\n    return [torch.rand(4)]\n"
        "def get_input_kwargs():\n    return {'mask': torch.ones(4)}\n"
        "def get_init_inputs():\n    return []\n"
    )
    graph = capture(read_problem(path))
    assert [given.argument for given in graph.inputs] == ["x", "mask"]
    assert [op.name for op in graph.operations] == ["mul"]


def test_nested_outputs_keep_their_structure(program: Program) -> None:
    graph = program("y = x + 1\nreturn {'sum': y, 'rest': (x, [y * 2, None])}")
    assert graph.output == {"sum": Ref("add"), "rest": (Ref("x"), [Ref("mul"), None])}
    assert graph.output_names() == ("add", "x", "mul")


def test_an_input_remembers_how_it_was_drawn(program: Program) -> None:
    graph = program("return self.table(x)", init="self.table = nn.Embedding(50, 4)",
                    inputs="torch.randint(0, 50, (2, 3))")  # fmt: skip
    recipe = graph.inputs[0].recipe
    assert recipe is not None
    assert [op.name for op in recipe.operations] == ["randint"]


# --- operations ---


def test_what_moves_data_is_no_view(program: Program) -> None:
    graph = program(
        """\
        turned = x.transpose(0, 1)
        return (x.reshape(-1).abs(), turned.reshape(-1), turned.contiguous(), turned.flatten(),
                x.to(torch.float64), x.to(torch.float32, copy=True), turned.abs())
        """
    )
    moved = {name for name, view in views(graph).items() if not view}
    assert {"reshape_1", "contiguous", "flatten", "to", "to_1"} <= moved
    assert views(graph)["reshape"]
    assert views(graph)["transpose"]


def test_operations_know_their_module_and_their_line(program: Program) -> None:
    graph = program(
        "hidden = self.block(x)\nreturn hidden * 2",
        init="self.block = Block()",
        classes="""\
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(8, 8)

            def forward(self, x):
                return self.linear(x).relu()
        """,
    )
    linear, relu, mul = graph.operations
    assert [(s.path, s.cls, s.builtin) for s in linear.scopes] == [
        ("block", "Block", False),
        ("block.linear", "Linear", True),
    ]
    assert relu.scopes == linear.scopes[:1]
    assert mul.scopes == ()
    assert linear.origin is not None
    assert linear.origin.targets == ("hidden",) or linear.origin.targets == ()


def test_the_same_module_called_twice_is_two_calls(program: Program) -> None:
    graph = program("return self.layer(self.layer(x))", init="self.layer = nn.Linear(8, 8)")
    assert [op.scopes[-1].call for op in graph.operations] == [0, 1]


def test_gradients_switched_off_inside_change_nothing(program: Program) -> None:
    graph = program("with torch.no_grad():\n    y = x * 2\nreturn y + 1")
    assert [op.name for op in graph.operations] == ["mul", "add"]


def test_training_is_captured_as_training(program: Program) -> None:
    graph = program("return self.norm(x)", init="self.norm = nn.BatchNorm1d(8)", mode="train")
    assert graph.mode == "train"
    assert graph.operations[-1].arg("training") is True


def test_capturing_leaves_torch_as_it_was(program: Program) -> None:
    program("return x + 1")
    assert torch.is_grad_enabled()
    assert isinstance(torch.ones(2) + 1, torch.Tensor)
    assert type(torch.ones(2)) is torch.Tensor


def test_a_normalisation_is_the_same_program_whether_or_not_a_machine_has_cudnn(
    program: Program,
) -> None:
    def captured(enabled: bool) -> object:
        with torch.backends.cudnn.flags(enabled=enabled):
            return program("return self.norm(x)", init="self.norm = nn.LayerNorm(8)").operations

    assert captured(True) == captured(False)


def test_a_module_copied_while_it_is_built_is_of_the_same_fake_tensors() -> None:
    with FakeTensorMode() as mode:
        copied = copy.deepcopy(torch.nn.Linear(2, 2))
    assert copied.weight.fake_mode is mode


def test_a_package_whose_name_begins_like_torchs_is_the_authors() -> None:
    beside_torch = Path(torch.__file__).parents[1]
    assert is_torchs_or_kdruns(str(beside_torch / "torch" / "nn" / "modules" / "linear.py"))
    assert not is_torchs_or_kdruns(str(beside_torch / "torchvision" / "ops" / "misc.py"))


def test_a_second_trace_reads_no_cached_tensor_of_the_first(write: Write) -> None:
    """Reading a number takes a second trace; a cached method then makes its tensor anew."""
    problem = write(
        "return x * self.rows(8) + int(lengths.max())",
        arguments="x, lengths",
        inputs="torch.randn(4, 8), torch.tensor([3, 5])",
        init="self.table = torch.arange(20000.0).view(8, 2500)",
        classes="""
        import functools

        class Cached(nn.Module):
            @functools.lru_cache(maxsize=8)
            def rows(self, n):
                return self.table.sin()[:n].flatten()[:n]
        """,
    )
    text = problem.path.read_text().replace("class Model(nn.Module)", "class Model(Cached)")
    problem.path.write_text(text)
    assert capture(read_problem(problem.path)).capture == "fake"


def test_a_list_of_many_numbers_is_read_once(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    replays: list[object] = []
    replay = ProvenanceRecorder.replay
    monkeypatch.setattr(
        ProvenanceRecorder, "replay", lambda self, t: replays.append(t) or replay(self, t)
    )
    graph = capture(write("return x * sum((torch.arange(500) % 7).tolist())"))
    assert graph.capture == "fake"
    assert len(replays) <= 4
