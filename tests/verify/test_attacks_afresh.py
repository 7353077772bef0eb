"""Attacks by somebody who had read the judge: each showed a hole once."""

import json

import pytest
from attacks import Attacks, assert_caught
from changing_files import RELU, at_import, in_forward
from decompositions_of_expressions import lone

pytestmark = pytest.mark.long

AFRESH = Attacks()


def add_method(made, text: str) -> None:
    made.edit_everywhere("relu.py", "    def forward", f"{text}\n\n    def forward")


@AFRESH.blame(RELU)
def forges_an_item_that_loads_a_library(made):
    forge(made, "['operation', 'load_library::__call__.__call__', {'u': ['data.bin']}, {'d': []}]")


@AFRESH.blame(RELU)
def forges_an_item_after_the_end(made):
    forge(made, "['leave', None], ['operation', 'print(1)', {'u': []}, {'d': []}, None, '']")


def forge(made, items: str) -> None:
    asked = "vars(torch.utils._python_dispatch)['_get_current_dispatch_mode_stack']()"
    in_forward(
        made,
        f"for mode in {asked}:\n    held = getattr(mode, '_recorder', None)\n"
        f"    held and held.items.extend([{items}])\nreturn F.relu(x)",
    )


@AFRESH.blame(RELU)
def decides_by_the_first_number(made):
    in_forward(made, "if x.flatten()[0].item() == 0.0:\n    return x\nreturn F.relu(x)")


@AFRESH.blame(RELU)
def keeps_what_it_gave_first(made):
    at_import(made, "KEPT = {}")
    in_forward(made, "if 'it' not in KEPT:\n    KEPT['it'] = F.relu(x)\nreturn KEPT['it']")


@AFRESH.blame(RELU)
def writes_into_its_input_where_that_takes_gradients(made):
    in_forward(made, "y = F.relu(x)\nif x.requires_grad:\n    x.detach().zero_()\nreturn y")


@AFRESH.blame(RELU)
def is_another_operation_once_it_is_moved(made):
    add_method(made, "    def to(self, *a):\n        self.moved = True\n        return self")
    in_forward(made, "return x if 'moved' in self.__dict__ else F.relu(x)")


@AFRESH.blame(RELU)
def exchanges_a_function_of_torchs(made):
    at_import(made, "torch.sigmoid = torch.tanh")


@AFRESH.blame("statistics")
def hides_a_module_of_pythons(made):
    (made.directory / "level_0_kernel" / "statistics.py").write_text("mean = max\n")


@AFRESH.blame("loop")
def leads_to_itself(made):
    (made.directory / "loop").symlink_to("loop")


@AFRESH.blame(RELU)
def says_that_it_trains_and_counts_its_calls(made):
    file = made.directory / "decomposition_tree.json"
    tree = json.loads(file.read_text())
    tree["metadata"]["mode"] = "train"
    file.write_text(json.dumps(tree))
    at_import(made, "CALLS = []")
    in_forward(made, "CALLS.append(1)\nreturn F.relu(x) * (1 + 0.5 * (len(CALLS) > 50))")


@pytest.mark.parametrize("attack", AFRESH, ids=str)
def test_it_is_caught(attack, tmp_path, judged):
    assert_caught(judged(attack.on(tmp_path), trials=1), attack)


RNN = tuple(f"rnn.{kind}_{of}_l0" for kind in ("weight", "bias") for of in ("ih", "hh"))
TWO = {"inputs": ("torch.randn(4, 16)",) * 2, "shapes": ((4, 16),) * 2}
SEVERAL = {
    "what follows a recurrent layer": (
        "torch.softmax(torch.relu(self.rnn(x)[0]), 1)",
        {"init": "self.rnn = nn.LSTM(16, 16)", "weights": RNN},
    ),
    "small ones after a large one": (
        "torch.exp(torch.tanh(self.fc(x).mean(1)))",
        {
            "init": "self.fc = nn.Linear(16, 16)",
            "weights": ("fc.weight", "fc.bias"),
            "output": (4,),
        },
    ),
    "an activation and a product that are no gate": ("torch.relu(x) * y", TWO),
    "a sum and a product": ("(x + y) * y", TWO),
    "a product and a sum": ("x * y + y", TWO),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_operations_are_told(name, tmp_path, judged, complaints):
    text, options = SEVERAL[name]
    made = lone(tmp_path / "made", text, **options)

    said = complaints(judged(made, trials=1), "rules")["level_0_kernel/kernel.py"]

    assert "is more than one operation" in said
