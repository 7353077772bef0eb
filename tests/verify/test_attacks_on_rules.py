"""Wrong by the rules alone: the tree, one operation a kernel, levels, order, inputs."""

import json
from functools import partial

import decompositions
import pytest
from attacks import Attacks, assert_caught
from changing_files import COMPOSED, CONV, FUSION, RELU, STEP, TREE, in_forward
from decompositions_of_expressions import LINEAR, NORM, SOFTMAX, TANH, line, lone
from decompositions_of_expressions import RELU as RELU_STAGE
from verdicts import assert_passes, complaints_of

pytestmark = pytest.mark.long

KERNEL = "level_0_kernel/kernel.py"
BELIEVED = Attacks()
LEVELS = Attacks()
INPUTS = Attacks()
MODEL = decompositions.small_model
WEIGHTS = ("op.weight", "op.bias")


def linear_and(expression, level="custom"):
    init = "self.op = nn.Linear(16, 16)"
    return partial(lone, original=expression, init=init, weights=WEIGHTS, level=level)


# --- the tree is believed about itself ------------------------------------------------------------


@BELIEVED.blame(KERNEL, make=linear_and("F.gelu(self.op(x))", level="level1"))
def says_that_a_linear_layer_and_a_gelu_are_a_problem_of_level_1(made):
    """The tree says so; the problem's file lies in no folder of that name."""


@BELIEVED.blame(KERNEL, make=linear_and("torch.softmax(self.op(x), 1).cumsum(1)", level="level1"))
def says_that_three_operations_are_a_problem_of_level_1(made):
    """A contraction, a softmax and a sum."""


@BELIEVED.blame(
    KERNEL,
    make=partial(
        lone, original="torch.softmax(x @ x.T, 1).sort(1)[0] @ x @ x.T @ x", level="level1"
    ),
)
def says_that_four_products_are_a_problem_of_level_1(made):
    """With a softmax and a sort between them."""


def exchange(made, path, one, other):
    names = json.loads(made.read(path))
    names[one], names[other] = names[other], names[one]
    made.write(path, json.dumps(names))


@BELIEVED.blame("step_1_model_to_layer", make=MODEL)
def exchanges_two_norms_that_begin_equal_in_a_step_and_holds_for_one_seed(made):
    path = "steps/step_1_model_to_layer/weight_map.json"
    exchange(made, path, "norm_0.weight", "norm_1.weight")
    exchange(made, path, "norm_0.bias", "norm_1.bias")
    made.edit_tree(lambda tree: tree["metadata"].update(specialisations=["x > 0 at model.py:1"]))


@BELIEVED.blame("model", COMPOSED, make=MODEL)
def exchanges_two_norms_that_begin_equal_in_the_whole_and_holds_for_one_seed(made):
    for kind in ("weight", "bias"):
        for here, there in (("0", "X"), ("1", "0"), ("X", "1")):
            old = f"blocks.{here}.norm.{kind}"
            made.edit(COMPOSED, old, f"blocks.{there}.norm.{kind}")
    made.edit_tree(lambda tree: tree["metadata"].update(specialisations=["x.max() at model.py:1"]))


@BELIEVED.blame("level_3_model/model_fp32.py", make=MODEL)
def exchanges_two_norms_that_begin_equal_in_the_roots_own_names(made):
    def change(tree):
        names = tree["nodes"]["root"]["weight_map"]
        one, other = "norm_0.weight", "norm_1.weight"
        names[one], names[other] = names[other], names[one]
        tree["metadata"].update(specialisations=["values of seed 0"])

    made.edit_tree(change)


@BELIEVED.blame("model", CONV, COMPOSED, STEP)
def says_that_the_bias_which_it_drops_is_not_used(made):
    made.edit_everywhere("conv2d.py", "kernel_size=3", "kernel_size=3, bias=False")
    made.edit(COMPOSED, ", 'conv.conv.bias': 'conv.bias'", "")
    made.write(f"{STEP}/weight_map.json", '{"conv.weight": "conv.conv.weight"}')
    made.edit_tree(lambda tree: tree["metadata"].update(unused_weights=["conv.bias"]))


@BELIEVED.blame(RELU)
def says_that_an_activation_of_half_precision_is_what_the_model_has(made):
    in_forward(made, "return F.relu(x.half()).float()")
    made.edit_tree(lambda tree: tree["metadata"].update(mode="eval", tolerance=1e9, dtype="half"))


@BELIEVED.blame(RELU)
def says_that_its_activation_runs_twice(made):
    in_forward(made, "return F.relu(F.relu(x))")
    made.edit_tree(lambda tree: tree["nodes"]["root.relu"].update(instance_count=2, repeat=2))


@BELIEVED.blame(RELU, TREE)
def says_that_an_activation_takes_and_gives_doubles(made):
    doubles = {"input_dtypes": {"x0": "float64"}, "output_dtypes": {"y0": "float64"}}
    made.edit_tree(lambda tree: tree["nodes"]["root.relu"].update(doubles))


@pytest.mark.parametrize("attack", BELIEVED, ids=str)
def test_what_a_tree_says_of_itself_excuses_nothing(attack, tmp_path, judged):
    assert_caught(judged(attack.on(tmp_path), trials=1), attack)


@pytest.mark.parametrize("trials", [1, 2])
@pytest.mark.parametrize("attack", [a for a in BELIEVED if "exchanges" in a.name], ids=str)
def test_weights_that_are_exchanged_are_seen_by_any_number_of_trials(
    attack, tmp_path, judged, trials
):
    assert_caught(judged(attack.on(tmp_path), trials=trials), attack)


# --- one operation --------------------------------------------------------------------------------

TWO = {"inputs": ("torch.randn(4, 16)",) * 2, "shapes": ((4, 16),) * 2}
NORMED = {"init": "self.op = nn.LayerNorm(16)", "weights": WEIGHTS}
IMAGE = {"inputs": ("torch.randn(2, 4, 8, 8)",), "shapes": ((2, 4, 8, 8),)}
KEPT = IMAGE | {"output": (2, 4, 8, 8)}
HALVED = IMAGE | {"output": (2, 4, 4, 4)}
WORDS = {
    "init": "self.op = nn.Embedding(9, 16)",
    "weights": ("op.weight",),
    "inputs": ("torch.randint(0, 9, (4,))",),
    "shapes": ((4,),),
    "dtypes": ("int64",),
}
RMS = "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)"
MORE_THAN_ONE = {
    "add and layer norm": ("self.op(x + y)", TWO | NORMED),
    "layer norm and a residual add": ("x + self.op(y)", TWO | NORMED),
    "relu, dropout and add": ("F.dropout(F.relu(x), 0.5, self.training) + y", TWO),
    "softmax of a gated sum": ("torch.softmax(x * torch.sigmoid(y) + y.exp(), 1)", TWO),
    "softmax and what becomes of it": ("(torch.softmax(x, 1) * y).sqrt().neg().exp()", TWO),
    "eight primitives of no formula": (
        "torch.atan(torch.sin(x) * y.exp() + torch.cos(y) - x.abs().log1p())",
        TWO,
    ),
    "twelve primitives in a row": (
        "x.sin().exp().cos().atan().abs().log1p().neg().exp().sinh().cos().square().sin()",
        {},
    ),
    "two norms": ("F.layer_norm(self.op(x), (16,))", NORMED),
    "rms norm and gelu": (f"F.gelu({RMS})", {}),
    "two rms norms, added": (f"{RMS} + {RMS.replace('x', 'y')}", TWO),
    "rms norm, modulated and gated": (f"({RMS}) * (1 + y) + torch.tanh(y) * x", TWO),
    "max pooling and relu": ("F.max_pool2d(F.relu(x), 2)", HALVED),
    "average pooling and sigmoid": ("torch.sigmoid(F.avg_pool2d(x, 2))", HALVED),
    "pooling and normalising": ("F.normalize(F.avg_pool2d(x, 2), dim=1)", HALVED),
    "upsampling and adding": ("F.interpolate(F.avg_pool2d(x, 2), scale_factor=2) + x", KEPT),
    "cumsum and exp": ("x.cumsum(1).exp()", {}),
    "exp of differences of cumsums": ("(x.cumsum(1) - y.cumsum(1)).exp() * x", TWO),
    "sort and softmax": ("torch.softmax(x.sort(1)[0], 1)", {}),
    "embedding and layer norm": ("F.layer_norm(self.op(x), (16,))", WORDS),
    "embedding, scale and tanh": ("torch.tanh(self.op(x) * 4.0)", WORDS),
    "swiglu and a residual add": ("F.silu(x) * y + x", TWO),
    "two activations of two inputs": ("torch.tanh(x) + torch.sigmoid(y)", TWO),
    "standardising and gating": ("(x - x.mean(1, True)) / x.std(1, keepdim=True) * y.tanh()", TWO),
    "spectrum, magnitude and logarithm": ("torch.fft.fft(x).abs().log1p()", {}),
    "cat and relu": ("torch.relu(torch.cat((x[:2], y[2:]), 0))", TWO),
    "clamp, round and scale": ("(x.clamp(-1, 1) * 127).round().div(127).tanh()", {}),
}


@pytest.mark.parametrize("expression", MORE_THAN_ONE)
def test_a_kernel_of_more_than_one_operation_is_told(expression, tmp_path, judged, complaints):
    text, options = MORE_THAN_ONE[expression]
    made = lone(tmp_path / "made", text, **options)

    verification = judged(made, trials=1, mode="train" if "dropout" in expression else "eval")

    assert verification.status == "failed"
    assert complaints(verification, "rules")[KERNEL].startswith("failed: is ")


CELL_WEIGHTS = {"a": "16, 16", "b": "16", "c": "16, 16", "d": "16"}
CHAIN = {
    "inputs": ("torch.randn(4, 16)", "torch.randn(16, 16)", "torch.randn(16, 4)"),
    "shapes": ((4, 16), (16, 16), (16, 4)),
    "output": (4, 4),
}
CELL = TWO | {
    "init": "\n".join(
        f"self.{n} = nn.Parameter(torch.randn({s}))" for n, s in CELL_WEIGHTS.items()
    ),
    "weights": tuple(CELL_WEIGHTS),
}
PRODUCTS_IN_ONE_CALL = {
    "einsum": ("x @ y @ z", "torch.einsum('ab,bc,cd->ad', x, y, z)", CHAIN),
    "multi_dot": ("x @ y @ z", "torch.linalg.multi_dot([x, y, z])", CHAIN),
    "rnn": (
        "torch.tanh(F.linear(x, self.a, self.b) + F.linear(y, self.c, self.d))",
        "torch.rnn_tanh_cell(x, y, self.a, self.c, self.b, self.d)",
        CELL,
    ),
}


@pytest.mark.parametrize("name", PRODUCTS_IN_ONE_CALL)
def test_one_call_may_be_several_products_only_where_the_original_has_it(name, tmp_path, judged):
    spelled, called, options = PRODUCTS_IN_ONE_CALL[name]
    attack = lone(tmp_path / "attack", spelled, called, **options)
    honest = lone(tmp_path / "honest", called, **options)

    reasons = [check.reason for check in complaints_of(judged(attack, trials=1))]
    assert reasons[0].startswith(f"is more than one operation: one {name} of 2 products"), reasons
    assert_passes(judged(honest, trials=1))


NAMES = {
    "a word that holds the name": (
        "class Config:\n    einsum_path = 1\n\n\nConfig.einsum_path",
        "x @ y @ z",
        True,
    ),
    "the name as a text": ("", "getattr(torch, 'einsum')('ab,bc,cd->ad', x, y, z)", False),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_original_calls_a_function_by_its_whole_name(name, tmp_path, judged):
    top, spelled, is_told = NAMES[name]
    made = lone(tmp_path, spelled, PRODUCTS_IN_ONE_CALL["einsum"][1], **CHAIN)
    made.edit("original.py", "class Model", f"{top}\n\n\nclass Model")
    made.edit_tree(lambda tree: tree["metadata"].pop("source_sha256"))

    reasons = [check.reason for check in complaints_of(judged(made, trials=1))]
    told = [reason.endswith("original.py calls no einsum") for reason in reasons]
    assert (True in told) == is_told, reasons  # rounding may be told too, for some drawn numbers


# --- levels and order -----------------------------------------------------------------------------

VIEW = ("transpose", "", "x.view(4, 4, 4).transpose(1, 2).transpose(1, 2).reshape(4, 16)")
PERIOD = [LINEAR, RELU_STAGE, TANH, NORM]


@LEVELS.blame("transpose.py", make=partial(line, stages=[LINEAR, VIEW, RELU_STAGE]))
def has_a_kernel_that_is_a_view(made):
    """It moves no number; the parent's forward is the place for it."""


@LEVELS.blame("whole.py", TREE, make=partial(line, stages=PERIOD * 19, level="model"))
def has_76_kernels_directly_under_a_model(made):
    """And no layer, no fusion."""


TWIN = ("relu_of_the_second_kind", "", "torch.relu(x)")
TWIN_LINEAR = ("projection", "nn.Linear(16, 16)", "self.op(x)")


@LEVELS.blame(TWIN[0], "relu.py", TREE, make=partial(line, stages=[LINEAR, RELU_STAGE, NORM, TWIN]))
def has_two_files_of_one_activation(made):
    """With other names, and the same bytes."""


@LEVELS.blame(
    "projection.py", "linear.py", TREE, make=partial(line, stages=[LINEAR, TANH, TWIN_LINEAR])
)
def has_two_files_of_one_linear_layer_told_apart_by_a_comment(made):
    made.edit_everywhere("projection.py", '"""A component."""', '"""A projection."""')


@LEVELS.blame(
    TREE, "whole.py", make=partial(line, stages=[LINEAR, SOFTMAX, NORM], listed=[2, 1, 0])
)
def lists_three_kernels_backwards(made):
    """They run one after the other, so that no other order is possible."""


@LEVELS.blame(TREE, FUSION, STEP)
def lists_the_activation_before_its_convolution(made):
    made.edit_tree(lambda tree: tree["nodes"]["root"].update(children=["root.relu", "root.conv"]))


@LEVELS.blame(TREE, "model_fp32.py", "step_1_model_to_layer", make=MODEL)
def lists_the_head_before_the_blocks(made):
    order = ["root.head", "root.b0", "root.b1"]
    made.edit_tree(lambda tree: tree["nodes"]["root"].update(children=order))


@LEVELS.blame(TREE, "block_8_fp32.py", make=MODEL)
def calls_a_layer_a_fusion_of_fusions(made):
    path = "level_1_fusion/block_8_fp32.py"
    (made.directory / "level_2_layer/block_8_fp32.py").rename(made.directory / path)

    def change(tree):
        for name in ("root.b0", "root.b1"):
            tree["nodes"][name].update(path=path, level="fusion")

    made.edit_tree(change)


@LEVELS.blame(TREE)
def makes_a_parent_its_own_grandchild(made):
    made.edit_tree(lambda tree: tree["nodes"]["root.relu"].update(children=["root", "root.conv"]))


@LEVELS.blame(TREE, "relu_2x5x8_fp32.py", make=MODEL)
def gives_two_parents_the_same_child(made):
    def change(tree):
        tree["nodes"]["root.b1.f"]["children"] = ["root.b1.f.l", "root.b0.f.r"]
        del tree["nodes"]["root.b1.f.r"]

    made.edit_tree(change)


@pytest.mark.parametrize("attack", LEVELS, ids=str)
def test_levels_children_and_their_order_are_those_that_run(attack, tmp_path, judged):
    assert_caught(judged(attack.on(tmp_path), trials=1), attack)


# --- inputs ---------------------------------------------------------------------------------------

DRAWN = "return [torch.randn(2, 4, 6, 6)]"


def draw(made, text):
    made.edit_everywhere("relu.py", DRAWN, text.replace("\n", "\n    "))


@INPUTS.blame(RELU)
def has_full_size_at_the_first_call_alone(made):
    draw(
        made,
        "size = 6 if not DRAWN else 2\nDRAWN.append(1)\nreturn [torch.randn(2, 4, size, size)]",
    )
    made.edit_everywhere("relu.py", "class Model", "DRAWN = []\n\n\nclass Model")


@INPUTS.blame(RELU)
def has_full_size_until_a_model_was_made(made):
    made.edit_everywhere("relu.py", "class Model", "MADE = []\n\n\nclass Model")
    made.edit_everywhere("relu.py", "        pass", "        MADE.append(1)")
    draw(made, "size = 2 if MADE else 6\nreturn [torch.randn(2, 4, size, size)]")


@INPUTS.blame(RELU)
def has_full_size_for_the_seeds_of_a_judge(made):
    draw(
        made,
        "size = 6 if torch.initial_seed() in range(8) else 2\n"
        "return [torch.randn(2, 4, size, size)]",
    )


@INPUTS.blame(RELU)
def lies_in_memory_in_another_order_than_in_the_model(made):
    draw(made, "return [torch.randn(2, 6, 6, 4).permute(0, 3, 1, 2)]")


@INPUTS.blame(RELU)
def is_one_number_seen_at_every_place(made):
    draw(made, "return [torch.randn(1, 1, 1, 1).expand(2, 4, 6, 6)]")


@INPUTS.blame(RELU)
def is_a_window_into_something_larger(made):
    draw(made, "return [torch.randn(2, 4, 9, 9)[:, :, 1:7, 1:7]]")


@INPUTS.blame(RELU)
def is_all_zeros(made):
    draw(made, "return [torch.zeros(2, 4, 6, 6)]")


@INPUTS.blame(RELU)
def is_all_negative_so_that_nothing_passes(made):
    draw(made, "return [torch.randn(2, 4, 6, 6).abs().neg()]")


@INPUTS.blame(RELU)
def has_another_precision_at_each_second_call(made):
    made.edit_everywhere("relu.py", "class Model", "DRAWN = []\n\n\nclass Model")
    kind = "kind = torch.float64 if len(DRAWN) % 2 else torch.float32"
    draw(made, f"{kind}\nDRAWN.append(1)\nreturn [torch.randn(2, 4, 6, 6, dtype=kind)]")


@INPUTS.blame(RELU)
def is_right_for_numbers_as_they_are_drawn_and_wrong_for_larger_ones(made):
    in_forward(made, "return F.relu(x) if bool((x < 9).all()) else F.relu(x) * 1.5")


@INPUTS.blame(RELU)
def has_one_input_more_that_nobody_gives_it_in_the_model(made):
    made.edit_everywhere("relu.py", "def forward(self, x)", "def forward(self, x, scale=1.5)")
    in_forward(made, "return F.relu(x) if isinstance(scale, torch.Tensor) else F.relu(x) * scale")
    draw(made, "return [torch.randn(2, 4, 6, 6), torch.ones(1)]")


@pytest.mark.parametrize("attack", INPUTS, ids=str)
def test_a_components_own_inputs_are_like_those_of_the_model(attack, tmp_path, judged):
    assert_caught(judged(attack.on(tmp_path), trials=1), attack)
