"""Which operations count as the same, and what makes a pass worth less."""

import pytest
import torch
from torch import nn

from runner.torch_internals import storage_of
from runner.verify import Check
from runner.verify.gates.coverage import compare_coverage, coverage_fault
from runner.verify.gates.health import numbers_among_inputs
from runner.verify.gates.weights import vary_weights
from runner.verify.options import VerifyOptions
from runner.verify.runtime.runner import (
    ForwardObservation,
    ForwardRunner,
    SharedInputs,
    disable_fused_paths,
)

IN_THIS_PROCESS = True


class _Program(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("table", torch.ones(3))

    def forward(self, *inputs):
        return self.function(self, *inputs)


@pytest.fixture
def seen(tmp_path):
    bench = ForwardRunner(tmp_path, VerifyOptions())

    def run(function, *inputs) -> ForwardObservation:
        model = _Program(function)
        _, found = bench.forward("program", model, (inputs, {}), 0, bench.make_watch(model))
        assert found is not None
        return found

    return run


def _in_place(m, x):
    y = torch.relu(x)
    y[:, 0] = x[:, 1]
    return y.add_(1)


def _functional(m, x):
    y = torch.relu(x)
    y = y.select_scatter(x.select(1, 1), 1, 0)
    return y + 1


def _in_place_on_a_part(m, x):
    y = torch.relu(x)
    y[:, :2].mul_(2)
    return y


def _in_place_on_rows(m, x):
    y = torch.relu(x)
    y[:2] *= 2
    return y


def _put_back(m, x):
    y = torch.relu(x)
    return y.slice_scatter(y[:, :2] * 2, 1, 0, 2)


def _in_place_then_add(m, x):
    y = _in_place_on_a_part(m, x)
    return y + torch.arange(3) * -1e9


def _put_back_then_add(number):
    return lambda m, x: _put_back(m, x) + torch.arange(3) * number


SAME = [
    (lambda m, x: torch.relu(x), lambda m, x: x.clone().relu_().view_as(x), False),
    (lambda m, x: torch.relu(x), lambda m, x: x.view(6).view(2, 3).relu(), True),
    (_in_place, _functional, True),
    (_in_place_on_a_part, _put_back, True),
    (lambda m, x: torch.relu(x).mul_(2), _put_back, False),
    (_in_place_then_add, _put_back_then_add(-1e9), True),
    (_in_place_then_add, _put_back_then_add(-60.0), False),
    (_in_place_on_rows, lambda m, x: torch.relu(x) * 2, True),
    (lambda m, x: x.t().contiguous(), lambda m, x: x.t().clone(), True),
    (lambda m, x: x + torch.arange(3), lambda m, x: x + torch.tensor([0, 1, 2]), True),
    (lambda m, x: x + torch.arange(3), lambda m, x: x + torch.ones(3, dtype=torch.int64), False),
    (lambda m, x: x + torch.full((2, 3), 2.0), lambda m, x: x + torch.full((2, 3), 3.0), False),
    (lambda m, x: (x * 2, x * 3)[0], lambda m, x: x * 2, True),
    (lambda m, x: x * 2, lambda m, x: x * 3, False),
    (lambda m, x: x * 2, lambda m, x: (x * 2) * 2, False),
    (lambda m, x: x * m.table, lambda m, x: x * torch.ones(3), True),
    (lambda m, x: x * m.table, lambda m, x: x * m.scale, False),
    (lambda m, x: x.abs() + x.neg(), lambda m, x: x.neg() + x.abs(), True),
    (lambda m, x: x.abs() - x.neg(), lambda m, x: x.neg() - x.abs(), False),
    (lambda m, x: x.abs().relu().neg(), lambda m, x: x.relu().abs().neg(), False),
    (lambda m, x: x.float().neg().half(), lambda m, x: x.t().float().neg().t().half(), False),
    (lambda m, x: x.contiguous().neg(), lambda m, x: x.view(2, 3).neg(), True),
    (lambda m, x: torch.softmax(x, 0), lambda m, x: torch.softmax(x, 1), False),
    (lambda m, x: x.double(), lambda m, x: x.double(), True),
    (lambda m, x: x.double(), lambda m, x: x.half(), False),
]


@pytest.mark.parametrize(("original", "kernels", "same"), SAME)
def test_operations_are_compared_by_what_they_compute(seen, original, kernels, same):
    x = torch.randn(2, 3)

    coverage = compare_coverage("model", seen(original, x), seen(kernels, x))

    assert coverage.equal == same


def test_an_operation_on_other_values_is_named_with_both_places(seen):
    x = torch.randn(2, 3)
    one = seen(lambda m, x: x.tanh().sin() + x.neg(), x)
    other = seen(lambda m, x: x.neg().sin() + x.tanh(), x)

    fault = coverage_fault(compare_coverage("model", one, other))

    assert fault is not None
    assert fault.startswith("sin(float32[2, 3]) -> float32[2, 3] works on other values than in the")


def test_what_comes_from_a_tensor_written_in_parts_is_compared_by_name_alone(seen):
    def in_parts(m, x):
        y = torch.zeros_like(x)
        y[:, :1], y[:, 1:] = x[:, :1].exp(), x[:, 1:]
        return y.relu()

    def by_scatter(m, x):
        y = x.new_empty(2, 3).slice_scatter(x[:, :1].exp(), 1, 0, 1)
        return y.slice_scatter(x[:, 1:], 1, 1, 3).relu()

    x = torch.randn(2, 3)

    assert compare_coverage("model", seen(in_parts, x), seen(by_scatter, x)).equal


def test_dead_work_may_be_left_out_but_no_dead_work_may_be_added(seen):
    x = torch.randn(2, 3)
    dead = seen(lambda m, x: (torch.exp(x), torch.relu(x))[1], x)
    lean = seen(lambda m, x: torch.relu(x), x)

    assert compare_coverage("model", dead, lean).equal
    assert compare_coverage("model", dead, lean).unused_operations == 1
    assert not compare_coverage("model", lean, dead).equal


def test_constants_of_the_program_may_be_recomputed_differently(seen):
    x = torch.randn(3, 3)
    one = seen(lambda m, x: x.masked_fill(torch.triu(torch.ones(3, 3), 1).bool(), 0.0), x)
    other = seen(lambda m, x: x.masked_fill(torch.ones(3, 3).tril().logical_not(), 0.0), x)

    assert compare_coverage("model", one, other).equal


def test_weights_and_inputs_that_reach_no_output_are_known(seen):
    x, y = torch.randn(2, 3), torch.randn(2, 3)

    found = seen(lambda m, x, y: (y * m.table, x * m.scale)[1], x, y)

    assert found.inputs_used == (True, False)
    assert found.weights_used == {"scale"}


def test_inputs_are_drawn_again_only_where_a_side_wrote_into_them():
    drawn = []

    def draw():
        drawn.append(torch.zeros(2))
        return (drawn[-1],), {}

    inputs = SharedInputs(draw)
    inputs.get()
    assert len(drawn) == 1
    inputs.get()[0][0].add_(1)
    assert float(inputs.get()[0][0].sum()) == 0.0
    assert len(drawn) == 2


def test_fast_paths_are_off_while_models_run_and_on_again_afterwards():
    before = torch.backends.mha.get_fastpath_enabled()

    with disable_fused_paths():
        assert not torch.backends.mha.get_fastpath_enabled()

    assert torch.backends.mha.get_fastpath_enabled() == before


def _softmax_becomes(softmax, expression: str) -> None:
    for path in ("original.py", "level_0_kernel/softmax_4x16_fp32.py"):
        softmax.edit(path, "torch.softmax(x, dim=1)", expression)
    digest = __import__("hashlib").sha256(softmax.read("original.py").encode()).hexdigest()
    softmax.edit_tree(lambda tree: tree["metadata"].update(source_sha256=digest))


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("x * 0", "the output is all zeros"),
        ("x * 0 + 3", "the output is constant: all 3"),
        ("torch.full_like(x, 2)", "input 0 reaches no output"),
        (
            "x.clamp(min=2) * 0 + torch.arange(16)",
            "changing input 0 changes the output by less than the tolerance",
        ),
        ("x.clamp(min=2) * 0 + torch.arange(16)", "the output is the same for every seed"),
        ("x / 0", "the output holds NaN or infinity"),
    ],
)
def test_an_output_that_says_little_passes_and_is_flagged(softmax, judged, expression, said):
    _softmax_becomes(softmax, expression)

    verification = judged(softmax)

    assert verification.first_failure is None
    assert said in verification.health


def test_numbers_among_the_inputs_are_named():
    inputs = ([torch.ones(2), 2.0, {"steps": 3, "causal": True}, None], {"mode": "linear"})

    (remark,) = numbers_among_inputs(inputs)

    assert remark == "get_inputs() gives numbers, and the files are for these alone: 2.0, 3"
    assert numbers_among_inputs(([torch.ones(2), True], {})) == []


def test_a_weight_without_effect_is_named(fusion, judged):
    for name in ("original.py", "conv2d.py", "conv_relu.py"):
        fusion.edit_everywhere(name, "kernel_size=3)", "kernel_size=3); self.conv.bias.data *= 0")
    fusion.edit_everywhere(
        "relu.py", "F.relu(x)", "torch.tanh(x - x.mean((0, 2, 3), keepdim=True))"
    )
    new = (
        "self.relu(self.conv(x))",
        "(lambda y: torch.tanh(y - y.mean((0, 2, 3), keepdim=True)))(self.conv(x))",
    )
    fusion.edit("original.py", *new)
    step = "steps/step_1_conv_relu_to_kernel/original.py"
    for path in ("level_1_fusion/conv_relu.py", step):
        fusion.edit(
            path,
            "F.relu(self.conv(x))",
            "(lambda y: torch.tanh(y - y.mean((0, 2, 3), keepdim=True)))(self.conv(x))",
        )

    verification = judged(fusion)

    assert verification.health == [
        "changing 1 of 2 weights changes the output by less than the tolerance: conv.bias"
    ]
    assert verification.warnings == []  # nobody can act on it


def test_what_is_too_expensive_to_examine_is_said_to_be_unknown(fusion, judged, monkeypatch):
    monkeypatch.setattr("runner.verify.gates.health.QUICK_FLOPS", 0)

    verification = judged(fusion)

    assert verification.not_examined == ["the effect of each input and weight"]
    assert verification.status == "passed"


def test_an_output_without_numbers_is_vacuous_and_no_pass(softmax, judged):
    _softmax_becomes(softmax, "torch.softmax(x, dim=1)[:0]")
    softmax.edit("level_0_kernel/softmax_4x16_fp32.py", "return [(4, 16)]", "return [(0, 16)]")
    softmax.edit_tree(lambda tree: tree["nodes"]["root"].update(output_shapes={"y0": [0, 16]}))

    verification = judged(softmax)

    assert verification.gate("composition").verdict == "vacuous"
    assert verification.status == "failed"


def test_a_state_in_a_plain_attribute_is_a_weight_that_may_be_mapped(softmax, judged):
    softmax.edit(
        "original.py",
        "    def forward(self, x):\n        return",
        "    def __init__(self):\n        super().__init__()\n"
        "        self.state = torch.randn(4, 16)\n\n"
        "    def forward(self, x):\n        self.state = x + self.state\n"
        "        x = self.state\n        return",
    )
    kernel = "level_0_kernel/softmax_4x16_fp32.py"
    softmax.edit(
        kernel,
        "pass",
        'self.register_buffer("state", torch.zeros(4, 16))',
    )
    softmax.edit(kernel, "(x, dim=1)", "(x + self.state, dim=1)")
    softmax.edit(
        "verification/composition_test.py", "WEIGHTS = {}", "WEIGHTS = {'softmax.state': 'state'}"
    )
    digest = __import__("hashlib").sha256(softmax.read("original.py").encode()).hexdigest()
    softmax.edit_tree(lambda tree: tree["metadata"].update(source_sha256=digest))

    assert judged(softmax).first_failure is None


class _WithTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.table = torch.arange(3)


@pytest.mark.parametrize(
    ("make", "bare"),
    [(lambda: nn.BatchNorm1d(3), True), (lambda: nn.LSTM(3, 3), False), (_WithTable, False)],
)
def test_only_models_that_hold_nothing_but_weights_are_built_without_numbers(tmp_path, make, bare):
    model = ForwardRunner(tmp_path, VerifyOptions()).build_bare("model", make, 0)

    assert all(tensor.is_meta == bare for tensor in model.state_dict().values())
    assert not model.training


def test_a_recurrent_layers_weights_are_shared_without_a_copy(tmp_path):
    from runner.verify.gates.weights import snapshot_weights, transfer_weights

    one, other = nn.GRU(3, 4, bidirectional=True), nn.GRU(3, 4, bidirectional=True)
    transfer_weights(
        snapshot_weights(one), other, {name: name for name, _ in one.named_parameters()}
    )
    x = torch.randn(2, 5, 3)

    assert torch.equal(one(x)[0], other(x)[0])
    assert other.weight_hh_l0.data_ptr() == one.weight_hh_l0.data_ptr()


@pytest.mark.parametrize("expression", ["x * 0", "x / 0"])
def test_a_comparison_that_could_not_have_failed_is_called_vacuous(softmax, judged, expression):
    _softmax_becomes(softmax, expression)

    verification = judged(softmax)

    (check,) = verification.gate("composition").checks
    assert (check.verdict, check.negative_control) == ("passed", "vacuous")
    said = "the composition is vacuous: it would pass with a kernel's output a hundredth larger"
    assert said in verification.health


@pytest.mark.parametrize("expression", ["x * 1e-6", "x * 1e-6 + 1e3"])
def test_what_a_tolerance_would_hide_is_noticed_by_its_bits(softmax, judged, expression):
    _softmax_becomes(softmax, expression)

    verification = judged(softmax)

    assert [c.negative_control for c in verification.gate("composition").checks] == ["noticed"]
    assert not any("vacuous" in said for said in verification.health)


def test_a_comparison_that_would_notice_says_so(fusion, judged):
    verification = judged(fusion)

    assert [
        c.negative_control for g in ("step", "composition") for c in verification.gate(g).checks
    ] == [*("noticed", "noticed", "noticed")]


def test_an_equal_comparison_without_a_control_is_no_check():
    with pytest.raises(ValueError, match="nobody saw it fail"):
        Check(gate="step", component="s", verdict="passed", max_diff=0.0, bitwise_equal=True)


@pytest.mark.parametrize("expression", ["x + 1e-3", "(x > 0.5).long()", "torch.softmax(x, dim=1)"])
def test_an_output_that_tells_is_not_called_constant(softmax, judged, expression):
    _softmax_becomes(softmax, expression)
    if "long" in expression:
        change = {"output_dtypes": {"y0": "int64"}}
        softmax.edit_tree(lambda tree: tree["nodes"]["root"].update(change))

    verification = judged(softmax)

    assert verification.first_failure is None
    assert not [said for said in verification.health if "constant" in said]


def test_a_large_output_is_said_not_to_be_examined_for_blindness(fusion, judged, monkeypatch):
    monkeypatch.setattr(VerifyOptions, "disk_cache_bytes", 1)

    assert judged(fusion).not_examined == ["the effect of each input and weight"]


def test_a_mask_of_infinities_stays_one_when_weights_are_moved():
    model = nn.Module()
    model.register_buffer("mask", torch.full((4, 4), -torch.inf).triu(1))
    model.register_buffer("limits", torch.tensor([torch.inf, torch.nan, 1.0]))
    vary_weights(model, torch.Generator().manual_seed(1))
    assert torch.equal(model.mask == -torch.inf, torch.ones(4, 4, dtype=torch.bool).triu(1))
    assert model.mask.isnan().sum() == 0
    assert model.limits[0] == torch.inf
    assert model.limits[1].isnan()
    assert model.limits[2] > 1.0


def test_what_lies_where_a_parameter_was_freed_is_no_parameter(tmp_path) -> None:
    bench, x = ForwardRunner(tmp_path, VerifyOptions()), torch.randn(2, 3)

    def run(freed: frozenset[int]) -> list[int | None]:
        model = _Program(lambda m, x: x * m.table)
        model.table = torch.tensor([1.0, 2.0, 3.0])
        addresses = freed and frozenset({storage_of(model.table)})
        watch = bench.make_watch(model, addresses)
        bench.forward("program", model, ((x,), {}), 0, watch)
        return [event.identity.code for event in watch.trace.events]

    assert run(frozenset()) == run(frozenset({1}))
