"""The classes of an emitted file mirror the author's modules, each written once."""

import re
from pathlib import Path

import pytest
import torch
from models import NO_INIT, Decomposed, output_of

from runner.emit.code.loop_rolling import roll_module_loops, roll_number_loops
from runner.emit.code.number_arguments import merge_variants

INVERTED_RESIDUALS = """
class InvertedResidual(nn.Module):
    def __init__(self, inputs, hidden, outputs, stride):
        super().__init__()
        self.expand = nn.Conv2d(inputs, hidden, 1, bias=False)
        self.depthwise = nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False)
        self.project = nn.Conv2d(hidden, outputs, 1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        x = F.relu6(self.expand(x))
        x = F.relu6(self.depthwise(x))
        return self.norm(self.project(x))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.blocks = nn.Sequential(
            InvertedResidual(8, 24, 8, 1),
            InvertedResidual(8, 48, 16, 2),
            InvertedResidual(16, 48, 16, 1),
        )
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)).mean(dim=(2, 3)))

def get_inputs(): return [torch.randn(2, 3, 16, 16)]
"""
TRANSFORMER = """
class Attention(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window = window
        self.norm = nn.LayerNorm(8)
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) * 8**-0.5
        position = torch.arange(6)
        distance = position[:, None] - position[None, :]
        hidden = distance < 0
        if self.window:
            hidden = hidden | (distance >= self.window)
        scores = scores.masked_fill(hidden, float("-inf"))
        return x + self.out(F.softmax(scores, dim=-1) @ v)

class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 32)
        self.down = nn.Linear(32, 8)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))

class Block(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.attention = Attention(window)
        self.mlp = FeedForward()

    def forward(self, x):
        return self.mlp(self.attention(x))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(window) for window in (3, None, 3, None))
        self.head = nn.Linear(8, 16)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)

def get_inputs(): return [torch.randn(2, 6, 8)]
"""


def text_of(directory: Path, level: str) -> str:
    """The file of the first component at a level."""
    return min(directory.glob(f"{level}/*.py")).read_text()


def classes_of(text: str) -> list[str]:
    return re.findall(r"^class (\w+)", text, re.MULTILINE)


def passes(directory: Path) -> bool:
    files = [f for f in directory.rglob("*.py") if f.parent != directory]
    files.remove(directory / "verification" / "checks.py")
    return all(output_of(file) == "PASS" for file in files)


def test_layers_that_differ_in_sizes_are_one_class_with_arguments(decomposed: Decomposed) -> None:
    directory = decomposed(INVERTED_RESIDUALS + NO_INIT)
    text = text_of(directory, "level_3_model")
    assert classes_of(text).count("InvertedResidual") == 1
    assert "def __init__(self, inputs, hidden, outputs, stride):" in text
    assert "InvertedResidual(inputs=8, hidden=48, outputs=16, stride=2)," in text
    assert "for block in self.blocks:\n            x = block(x)\n" in text
    assert passes(directory)


def test_a_layer_s_file_has_the_author_s_classes(decomposed: Decomposed) -> None:
    directory = decomposed(TRANSFORMER + NO_INIT)
    for text in (file.read_text() for file in directory.glob("level_2_layer/*.py")):
        assert classes_of(text) == ["Attention", "FeedForward", "Model"]
        assert "self.attention = Attention()" in text
        assert "self.qkv = nn.Linear(in_features=8, out_features=24)" in text


def test_blocks_of_two_kinds_are_named_by_their_difference_and_run_in_a_loop(
    decomposed: Decomposed,
) -> None:
    directory = decomposed(TRANSFORMER + NO_INIT)
    text = text_of(directory, "level_3_model")
    names = classes_of(text)
    assert len(names) == len(set(names))
    assert names.count("FeedForward") == 1
    assert {"Block", "BlockWindow3", "Attention", "AttentionWindow3"} <= {*names}
    assert "for block in self.blocks:" in text
    assert "8**-0.5" in text
    assert passes(directory)


def test_a_module_that_is_one_operation_is_no_class(decomposed: Decomposed) -> None:
    directory = decomposed(
        """
        class Scale(nn.Module):
            def forward(self, x):
                return x * 2

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = Scale()
                self.fc = nn.Linear(4, 4)

            def forward(self, x):
                return self.fc(self.scale(x)).sum()

        def get_inputs(): return [torch.randn(2, 4)]
        """
        + NO_INIT
    )
    assert classes_of(text_of(directory, "level_3_model")) == ["Model"]


def test_a_module_with_a_weight_or_several_operations_is_a_class(decomposed: Decomposed) -> None:
    directory = decomposed(
        """
        class RMSNorm(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(dim))

            def forward(self, x):
                return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight

        class Gate(nn.Module):
            def forward(self, x):
                gate, up = x.chunk(2, dim=-1)
                return F.silu(gate) * up

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.out_norm = RMSNorm(4), RMSNorm(8)
                self.fc, self.gate = nn.Linear(4, 16), Gate()

            def forward(self, x):
                return self.out_norm(self.gate(self.fc(self.norm(x)))).sum()

        def get_inputs(): return [torch.randn(2, 4)]
        """
        + NO_INIT
    )
    text = text_of(directory, "level_3_model")
    assert classes_of(text) == ["RMSNorm", "Gate", "Model"]
    assert re.search(r"self.norm = RMSNorm\(\w+=4\)", text)
    assert "return self.out_norm(self.gate(self.fc(self.norm(x)))).sum()" in text
    assert passes(directory)


def test_the_same_holds_in_training_mode(decomposed: Decomposed) -> None:
    directory = decomposed(INVERTED_RESIDUALS + NO_INIT, mode="train")
    assert "InvertedResidual(inputs=8, hidden=24" in text_of(directory, "level_3_model")
    assert passes(directory)


@pytest.mark.parametrize(
    ("lines", "parameters", "first", "line"),
    [
        (
            ["self.fc = nn.Linear(in_features=8, out_features=8)",
             "self.fc = nn.Linear(in_features=16, out_features=16)"],
            ("features",), "features=8",
            "self.fc = nn.Linear(in_features=features, out_features=features)",
        ),
        (
            ["self.conv = nn.Conv2d(in_channels=4, out_channels=8, kernel_size=3, padding=1)",
             "self.conv = nn.Conv2d(in_channels=4, out_channels=8, kernel_size=5, padding=2)"],
            ("kernel_size",), "kernel_size=3",
            "self.conv = nn.Conv2d(in_channels=4, out_channels=8, kernel_size=kernel_size,"
            " padding=kernel_size // 2)",
        ),
        (
            ["self.conv = nn.Conv2d(in_channels=4, out_channels=8, kernel_size=3)",
             "self.conv = nn.Conv2d(in_channels=4, out_channels=8, kernel_size=3, stride=2)"],
            ("stride",), "stride=1",
            "self.conv = nn.Conv2d(in_channels=4, out_channels=8, kernel_size=3, stride=stride)",
        ),
    ],
)  # fmt: skip
def test_numbers_that_differ_become_arguments_with_names(
    lines: list[str], parameters: tuple[str, ...], first: str, line: str
) -> None:
    shared = merge_variants([([each], ["return x"]) for each in lines])
    assert shared is not None
    assert (shared.parameters, shared.arguments(0), shared.init_lines) == (
        parameters,
        first,
        (line,),
    )


def test_texts_that_differ_in_words_share_no_class() -> None:
    assert merge_variants([([], ["return F.relu(x)"]), ([], ["return F.gelu(x)"])]) is None


def test_a_number_over_a_tensor_is_the_product_with_its_reciprocal() -> None:
    x = torch.randn(1000)
    assert torch.equal(1.7 / x, torch.reciprocal(x) * 1.7)


def test_what_repeats_with_one_module_after_the_other_is_a_loop(decomposed: Decomposed) -> None:
    directory = decomposed(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(5))

            def forward(self, x):
                for layer in self.layers:
                    x = x + layer(x)
                return x.sum()

        def get_inputs(): return [torch.randn(2, 4)]
        """
        + NO_INIT
    )
    text = text_of(directory, "level_3_model")
    assert "nn.Linear(in_features=4, out_features=4) for _ in range(5)" in text
    assert re.search(r"for linear in self.linears:\n            x = .*linear\(x\)", text)
    assert "linears.4.weight" in text
    assert passes(directory)


@pytest.mark.parametrize(
    "lines",
    [
        ["x = self.a_0(x)", "x = F.relu(x)", "x = self.a_1(x)", "x = self.a_2(x)", "return x"],
        ["x = self.a_0(x)", "y = self.a_1(x)", "x = self.a_2(y)", "return x + y"],
    ],
)
def test_what_differs_in_between_is_no_loop(lines: list[str]) -> None:
    made = [f"self.a_{n} = nn.Linear(in_features=4, out_features=4)" for n in range(3)]
    assert roll_module_loops(made, lines, []) == (made, lines, [])


def test_an_argument_is_not_called_like_an_attribute() -> None:
    variants = [
        ([f"self.features = nn.Linear(in_features={n}, out_features={n})"], [f"return x[{n}]"])
        for n in (4, 8)
    ]
    shared = merge_variants(variants)
    assert shared is not None
    assert shared.parameters == ("features_2",)
    assert shared.init_lines[0] == "self.features_2 = features_2"


DENSE = """
class DenseBlock(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(width + k * 4), nn.ReLU(), nn.Conv2d(width + k * 4, 4, 1))
            for k in range(layers)
        )

    def forward(self, x):
        features = [x]
        for layer in self.layers:
            features.append(layer(x))
            x = torch.cat(features, dim=1)
        return x

class Squeeze(nn.Module):
    def __init__(self, channels, squeezed):
        super().__init__()
        self.gate = nn.Sequential(
            nn.Conv2d(channels, squeezed, 1), nn.ReLU(), nn.Conv2d(squeezed, channels, 1)
        )

    def forward(self, x):
        return x * torch.sigmoid(self.gate(x.mean(dim=(2, 3), keepdim=True)))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 1)
        self.one = DenseBlock(8, 3)
        self.squeeze_one = Squeeze(20, 8)
        self.two = DenseBlock(20, 4)
        self.squeeze_two = Squeeze(36, 20)
        self.head = nn.Conv2d(36, 2, 1)

    def forward(self, x):
        x = self.squeeze_one(self.one(self.stem(x)))
        return self.head(self.squeeze_two(self.two(x)))

def get_inputs(): return [torch.randn(2, 3, 4, 4)]
"""


def test_blocks_of_more_or_fewer_layers_are_one_class(decomposed: Decomposed) -> None:
    directory = decomposed(DENSE + NO_INIT)
    text = text_of(directory, "level_3_model")
    assert "self.one = DenseBlock(in_channels=8, count=3)" in text
    assert "self.two = DenseBlock(in_channels=20, count=4)" in text
    assert "(in_channels=in_channels + 4 * i) for i in range(count)" in text
    assert passes(directory)


def test_arguments_have_the_author_s_names(decomposed: Decomposed) -> None:
    text = text_of(decomposed(DENSE + NO_INIT), "level_3_model")
    assert "Squeeze(channels=20, squeezed=8)" in text
    assert "Squeeze(channels=36, squeezed=20)" in text


def test_a_kernel_that_joins_the_author_s_list_takes_any_number(decomposed: Decomposed) -> None:
    directory = decomposed(DENSE + NO_INIT)
    for file in directory.glob("level_0_kernel/cat_*.py"):
        assert "def forward(self, *features: torch.Tensor):\n        return" in file.read_text()


def test_steps_call_a_child_by_its_operation(decomposed: Decomposed) -> None:
    directory = decomposed(TRANSFORMER + NO_INIT)
    steps = "".join(file.read_text() for file in directory.glob("steps/*/refactored.py"))
    names = set(re.findall(r"Model as (\w+)", steps))
    assert {"Linear8x24", "Linear8x8", "FeedForward", "BlockWindow3", "Block"} <= names
    assert not any("Fp32" in name for name in names)


def test_a_recurrent_layer_makes_its_own_zeros(decomposed: Decomposed) -> None:
    directory = decomposed(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTM(4, 8)
                self.fc = nn.Linear(8, 2)

            def forward(self, x):
                y, _ = self.lstm(x)
                return self.fc(y)

        def get_inputs(): return [torch.randn(5, 2, 4)]
        """
        + NO_INIT
    )
    files = [*directory.glob("level_*/*.py"), directory / "verification/composition_test.py"]
    assert not any("zeros" in file.read_text() for file in files)
    assert passes(directory)


def test_statements_that_count_up_are_a_loop() -> None:
    lines = [f"h = self.step(x[:, {t}], h)  # [2, 8]" for t in range(3, 7)]
    loop = ["for t in range(3, 7):", "    h = self.step(x[:, t], h)  # [2, 8]"]
    assert roll_number_loops(["h = self.start(x)", *lines, "return h"]) == [
        "h = self.start(x)", *loop, "return h"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "lines",
    [
        ["x = x[:, 0]", "x = x[:, 1]", "return x"],
        ["x = x[:, 0]", "x = x[:, 2]", "x = x[:, 3]", "return x"],
        ["x = F.relu(x)", "x = F.relu(x)", "x = F.relu(x)", "return x"],
    ],
)
def test_statements_that_do_not_count_up_stay(lines: list[str]) -> None:
    assert roll_number_loops(lines) == lines
