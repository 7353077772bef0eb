"""A file that remembers anything from call to call, or from build to build, is told."""

import pytest
from attacks import WRONG, Attacks, assert_caught
from changing_files import CONV, RELU, RIGHT, at_import, in_forward
from decompositions import conv_relu
from decompositions_of_expressions import lone

pytestmark = pytest.mark.long

REMEMBERING = Attacks()
KERNEL = "level_0_kernel/kernel.py"
TABLE = "self.register_buffer('m', torch.arange(16.0))"


def masked(directory):
    """A kernel that adds a table, which it has as a buffer."""
    return lone(directory, "x + self.m", init=TABLE, weights=("m",))


def counts(made, value, step, condition, top=""):
    """Hold a value, change it with each call, and be wrong once the condition fails."""
    made.edit_everywhere("relu.py", "        pass", f"        self.n = {value}")
    if top:
        at_import(made, top)
    in_forward(made, f"{step}\nif {condition}:\n    {RIGHT}\n{WRONG}")


@REMEMBERING.blame(RELU)
def counts_in_the_shape_of_an_expanded_tensor(made):
    counts(
        made,
        "torch.zeros(1)",
        "self.n = self.n[:1].expand(len(self.n) + 1)",
        "len(self.n) < 60",
    )


@REMEMBERING.blame(RELU)
def counts_in_the_rank_of_a_tensor_in_a_list(made):
    step = "self.n[0] = self.n[0].unsqueeze(0) if self.n[0].ndim < 60 else self.n[0]"
    counts(made, "[torch.zeros(1)]", step, "self.n[0].ndim < 50")


@REMEMBERING.blame(RELU)
def counts_in_the_order_of_a_dict(made):
    step = "k = next(iter(self.n))\nself.n[k] = self.n.pop(k)"
    counts(made, "{str(k): 0 for k in range(99)}", step, "k != '70'")


@REMEMBERING.blame(RELU)
def counts_in_a_range(made):
    counts(made, "range(0)", "self.n = range(len(self.n) + 1)", "len(self.n) < 60")


@REMEMBERING.blame(RELU)
def counts_in_a_slice(made):
    counts(made, "slice(0)", "self.n = slice(self.n.stop + 1)", "self.n.stop < 60")


@REMEMBERING.blame(RELU)
def counts_in_functions_that_hold_each_other(made):
    step = "f = self.n\nself.n = lambda k: f(k) + 1"
    counts(made, "lambda k: 0", step, "self.n(0) < 60")


@REMEMBERING.blame(RELU)
def turns_a_list_of_functions(made):
    at_import(made, "L = [F.relu] * 60 + [F.gelu]")
    in_forward(made, "L.append(L.pop(0))\nreturn L[0](x)")


def count_builds(made, top, count, condition):
    """Make the table wrong in later models."""
    made.edit_everywhere("kernel.py", "class Model", f"{top}\n\n\nclass Model")
    made.edit_everywhere(
        "kernel.py", TABLE, f"{count}\n        {TABLE[:-1]} if {condition} else torch.zeros(16))"
    )


@REMEMBERING.blame(KERNEL, make=masked)
def spoils_its_table_in_the_twentieth_model(made):
    count_builds(made, "B = []", "B.append(1)", "len(B) < 20")


@REMEMBERING.blame(KERNEL, make=masked)
def counts_its_models_in_its_class(made):
    made.edit_everywhere("kernel.py", "(nn.Module):", "(nn.Module):\n    built = []\n")
    count_builds(made, "B = 0", "self.built.append(1)", "len(self.built) < 20")


@REMEMBERING.blame(KERNEL, make=masked)
def counts_its_models_in_the_shape_of_a_tensor(made):
    count_builds(made, "B = torch.zeros(1)", "B.resize_(len(B) + 1)", "len(B) < 20")


@REMEMBERING.blame(KERNEL, make=masked)
def spoils_its_table_once_inputs_were_drawn_often(made):
    count_builds(made, "B = []", "pass", "len(B) < 20")
    made.edit_everywhere(
        "kernel.py", "    return [torch.randn", "    B.append(1)\n    return [torch.randn"
    )


@REMEMBERING.blame(KERNEL, make=masked)
def draws_smaller_inputs_later(made):
    made.edit_everywhere("kernel.py", "class Model", "B = []\n\n\nclass Model")
    drawn = "    B.append(1)\n    return [torch.randn(4 if len(B) < 20 else 2, 16)]"
    made.edit_everywhere("kernel.py", "    return [torch.randn(4, 16)]", drawn)


@REMEMBERING.blame(KERNEL, make=masked)
def counts_its_models_in_the_elements_of_a_tensor(made):
    made.edit_everywhere("kernel.py", "class Model", "B = torch.zeros(1)\n\n\nclass Model")
    made.edit_everywhere("kernel.py", TABLE, f"B.data.add_(1)\n        {TABLE[:-1]} * (B < 20))")


@REMEMBERING.blame(KERNEL, make=masked)
def spoils_its_table_once_a_generator_has_drawn_a_large_number(made):
    made.edit_everywhere("kernel.py", "class Model", "G = torch.Generator()\n\n\nclass Model")
    made.edit_everywhere("kernel.py", TABLE, f"{TABLE[:-1]} * (torch.rand(1, generator=G) < 0.99))")


@REMEMBERING.blame(RELU)
def draws_zeros_once_a_tensor_has_counted_to_twenty(made):
    at_import(made, "B = torch.zeros(1)")
    drawn = "    B.add_(1)\n    return [torch.randn(2, 4, 6, 6) * (B < 20)]"
    made.edit_everywhere("relu.py", "    return [torch.randn(2, 4, 6, 6)]", drawn)


@REMEMBERING.blame(KERNEL, make=masked)
def counts_its_models_in_a_default_argument_of_its_constructor(made):
    made.edit_everywhere("kernel.py", "def __init__(self)", "def __init__(self, kept=[])")
    count_builds(made, "B = 0", "kept.append(1)", "len(kept) < 20")


@REMEMBERING.blame(KERNEL, make=masked)
def counts_its_models_in_what_sets_a_property(made):
    top = (
        "class C:\n    @property\n    def n(self):\n        return 1\n\n    @n.setter\n"
        "    def n(self, n, kept=[]):\n        kept.append(n)\n        self.size = len(kept)"
    )
    count_builds(made, top, "c = C()\n        c.n = 1", "c.size < 20")


@REMEMBERING.blame(KERNEL, make=masked)
def counts_its_models_in_what_a_dict_makes_of_missing_keys(made):
    top = (
        "from collections import defaultdict\n\n\ndef make():\n    kept = []\n\n"
        "    def count():\n        kept.append(1)\n        return len(kept)\n\n    return count\n"
        "\n\nB = defaultdict(make())"
    )
    count_builds(made, top, "n = B[0]\n        B.pop(0)", "n < 20")


@REMEMBERING.blame(KERNEL, make=masked)
def counts_its_models_in_classes_that_are_numbers(made):
    top = (
        "import numbers\n\n\nclass C:\n    def register(self):\n        pass\n\n\n"
        "ALL = [C, nn.ReLU, nn.Linear]"
    )
    left = "left = [c for c in ALL if not issubclass(c, numbers.Number)]"
    count = f"{left}\n        numbers.Number.register(left[0] if left else C)"
    count_builds(made, top, count, "left")


def counts_in_an_attribute(made, value, owner):
    """Count the models in an attribute of something that every file can reach."""
    start = f"def start():\n    c = {value}\n    {owner}.n = 0\n\n\nB = start()"
    top = f"import functools\n\n\nclass C:\n    func = None\n\n\n{start}"
    count_builds(made, top, f"c = {value}\n        {owner}.n = {owner}.n + 1", f"{owner}.n < 20")


@REMEMBERING.blame(KERNEL, make=masked)
def counts_its_models_in_a_class_of_torch(made):
    counts_in_an_attribute(made, "next(iter([nn.Linear]))", "c")


@REMEMBERING.blame(KERNEL, make=masked)
def counts_its_models_in_a_function_of_torch(made):
    counts_in_an_attribute(made, "functools.partial(F.silu)", "c.func")


def squared(directory):
    """A kernel whose weight is as wide as it is high."""
    init = "self.m = nn.Parameter(torch.randn(16, 16))"
    return lone(directory, "x @ self.m", init=init, weights=("m",))


def with_two_tables(directory):
    """A kernel that has two tables of one shape in plain attributes."""
    init = "self.a = torch.arange(16.0)\nself.b = torch.ones(16)"
    return lone(directory, "torch.addcmul(self.b, x, self.a)", init=init)


def after_the_call(made, expression, text):
    """Run statements after the kernel computed its result."""
    body = f"y = {expression}\n        {text}\n        return y"
    made.edit_everywhere("kernel.py", f"return {expression}", body)


@REMEMBERING.blame(KERNEL, make=squared)
def transposes_its_weight_after_each_call(made):
    after_the_call(made, "x @ self.m", "self.m.data = self.m.data.T")


@REMEMBERING.blame(KERNEL, make=with_two_tables)
def exchanges_its_tables_after_each_call(made):
    after_the_call(made, "torch.addcmul(self.b, x, self.a)", "self.a, self.b = self.b, self.a")


@REMEMBERING.blame(KERNEL, make=with_two_tables)
def exchanges_the_values_of_its_tables_after_the_first_call(made):
    swap = "self.a.data, self.b.data = self.b.data, self.a.data"
    once = f"if not hasattr(self, 'seen'):\n            self.seen = True\n            {swap}"
    after_the_call(made, "torch.addcmul(self.b, x, self.a)", once)


@REMEMBERING.blame(KERNEL, make=masked)
def turns_a_list_with_each_model(made):
    count_builds(made, "B = [0, 1]", "B.reverse()", "B[0]")


@REMEMBERING.blame(KERNEL, make=masked)
def turns_a_list_with_each_draw(made):
    count_builds(made, "B = [1, 0]", "pass", "B[0]")
    drawn = "    B.reverse()\n    return [torch.randn"
    made.edit_everywhere("kernel.py", "    return [torch.randn", drawn)


@REMEMBERING.blame(CONV)
def exchanges_its_weights_after_the_call(made):
    zeros = "{'weight': torch.zeros(4, 3, 3, 3), 'bias': torch.zeros(4)}"
    load = f"self.conv.load_state_dict({zeros}, assign=True)"
    in_forward(made, f"y = self.conv(x)\n{load}\nreturn y", "conv2d.py")


@REMEMBERING.blame(RELU)
def swallows_errors_in_a_context_of_its_own(made):
    leave = "    def __exit__(self, kind, error, trace):\n        return True"
    at_import(made, f"class Quiet:\n    def __enter__(self):\n        pass\n\n{leave}")
    in_forward(made, f"with Quiet():\n    return x.T.view(-1)[x.numel()] + x\n{WRONG}")


@pytest.mark.parametrize("attack", REMEMBERING, ids=str)
def test_it_is_caught(attack, tmp_path, judged):
    assert_caught(judged(attack.on(tmp_path)), attack)


def test_the_message_says_what_is_kept(tmp_path, judged, complaints):
    made = conv_relu(tmp_path / "made")
    counts_in_a_range(made)

    said = complaints(judged(made), "self-test")

    assert said[RELU] == "failed: keeps something from call to call: self.n"
