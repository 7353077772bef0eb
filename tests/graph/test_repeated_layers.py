"""Models of equal layers: one is traced, and the program is the one of tracing each."""

import pytest
from programs import Write

from runner.graph.tracing import capture as capturing
from runner.graph.tracing.capture import capture
from runner.graph.tracing.repeated_layers import RepeatedLayers, find_repeated_layers

STACK = "self.layers = nn.ModuleList([Layer(i) for i in range(8)])"
LOOP = "for layer in self.layers:\n    x = layer(x)\nreturn x"
LAYER = """
    class Layer(nn.Module):
        def __init__(self, index):
            super().__init__()
            self.index = index
            self.up = nn.Linear(8, 8)
            self.norm = nn.LayerNorm(8)
            {init}

        def forward(self, x, mask=None, cache=None):
            {forward}
"""


def layer(forward: str, init: str = "pass") -> str:
    return LAYER.format(forward=forward.replace("\n", "\n            "), init=init)


STEP = """
    class Step:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, x):
            return x * self.factor
"""
PLAIN = layer("return x + self.up(self.norm(x))")


@pytest.fixture
def repeated(monkeypatch: pytest.MonkeyPatch) -> list[RepeatedLayers]:
    """The equal layers of each model that is captured, with their calls."""
    layers: list[RepeatedLayers] = []

    def find(model: object) -> RepeatedLayers | None:
        result = find_repeated_layers(model)  # type: ignore[arg-type]
        layers.extend([result] if result else [])
        return result

    monkeypatch.setattr(capturing, "find_repeated_layers", find)
    return layers


def test_the_first_of_equal_layers_is_traced(write: Write, repeated: list[RepeatedLayers]) -> None:
    graph = capture(write(LOOP, init=STACK, classes=PLAIN))
    assert [number for _, number in repeated[0].calls] == [0] * 8
    assert len(repeated[0].first_calls) == 1
    weights = [op.args[1].name for op in graph.operations if op.name == "linear"]  # type: ignore[union-attr]
    assert [graph.states[name].path for name in weights] == [
        f"layers.{n}.up.weight" for n in range(8)
    ]
    scopes = [op.scopes[0].path for op in graph.operations if op.name == "layer_norm"]
    assert scopes == [f"layers.{n}" for n in range(8)]


@pytest.mark.parametrize(
    ("forward", "init", "classes", "traced"),
    {
        "alike": (LOOP, STACK, PLAIN, 1),
        "an index that forward does not need": (
            LOOP,
            STACK,
            layer("return x if cache is not None and self.index else self.up(x)"),
            1,
        ),
        "an index that forward reads": (LOOP, STACK, layer("return self.up(x) * self.index"), 4),
        "two kinds in turns": (
            LOOP,
            STACK,
            layer("return self.up(x) if self.is_even else x", "self.is_even = index % 2 == 0"),
            2,
        ),
        "an attribute that only some have": (
            LOOP,
            STACK,
            layer("return self.up(x) if hasattr(self, 'y') else x", "if index > 3: self.y = 1"),
            2,
        ),
        "a mask for all": (
            "mask = torch.arange(8, device=x.device) > 3\n"
            "for layer in self.layers:\n    x, mask = layer(x, mask)\nreturn x",
            STACK,
            layer("return self.up(x).masked_fill(mask, 0.0), mask"),
            1,
        ),
        "another layout after the first": (
            "x = x.T.contiguous().T\n" + LOOP,
            STACK,
            layer("return self.up(self.norm(x) + x)"),
            2,
        ),
        "a residual that adds in place": (
            LOOP,
            STACK,
            layer("x = self.up(x)\nx += 1\nreturn x"),
            1,
        ),
        "a layer that changes what it is given": (
            LOOP,
            STACK,
            layer("x.add_(1)\nreturn self.up(x)"),
            0,
        ),
        "a layer that counts its calls": (
            LOOP,
            STACK,
            layer("self.count += 1\nreturn self.up(x) * self.count", "self.count = index"),
            0,
        ),
        "a number of the model that its loop changes": (
            "for n, layer in enumerate(self.layers):\n    self.depth = n\n"
            "    x = layer(x)\nreturn x",
            STACK + "\nfor layer in self.layers:\n    layer.model = [self]",
            layer("return self.up(x) * self.model[0].depth"),
            4,
        ),
        "an object that its loop changes": (
            "for n, layer in enumerate(self.layers):\n    STATE.depth = n\n"
            "    x = layer(x)\nreturn x",
            STACK,
            layer("return self.up(x) * self.state.depth", "self.state = STATE")
            + "\n    class State:\n        depth = 0\n\n    STATE = State()\n",
            4,
        ),
        "an object of each layer's own": (
            LOOP,
            STACK,
            layer("return self.step(self.up(x))", "self.step = Step(2.0)") + STEP,
            1,
        ),
        "objects that differ": (
            LOOP,
            STACK,
            layer("return self.step(self.up(x))", "self.step = Step(index)") + STEP,
            4,
        ),
        "objects that differ in what they hold": (
            LOOP,
            STACK,
            layer("return self.step(self.up(x))", "self.step = Step(torch.tensor(2.0))") + STEP,
            4,
        ),
        "objects with slots": (
            LOOP,
            STACK,
            layer("return self.step(self.up(x))", "self.step = Step(index)")
            + STEP.replace("class Step:", "class Step:\n        __slots__ = ('factor',)"),
            4,
        ),
        "an object that counts the calls of its layer": (
            LOOP,
            STACK,
            layer("self.step.factor += 1\nreturn self.step(self.up(x))", "self.step = Step(index)")
            + STEP,
            0,
        ),
        "an object that is changed after its layer's call": (
            "for layer in self.layers:\n    x = layer(x)\n    layer.step.factor = 3\n"
            "    for other in self.layers:\n        other.step.factor = 3\nreturn x",
            STACK,
            layer("return self.step(self.up(x))", "self.step = Step(2)") + STEP,
            2,
        ),
        "a global that its loop changes": (
            "global DEPTH\nfor n, layer in enumerate(self.layers):\n    DEPTH = n\n"
            "    x = layer(x)\nreturn x",
            STACK,
            layer("return self.up(x) * DEPTH") + "\n    DEPTH = 0\n",
            4,
        ),
        "a list that a layer fills": (
            "kept = []\nfor layer in self.layers:\n    x = layer(x, cache=kept)\n"
            "return x + sum(kept)",
            STACK,
            layer("cache.append(x)\nreturn self.up(x)"),
            0,
        ),
        "a list of the model that a layer fills": (
            "self.kept.clear()\nfor layer in self.layers:\n    x = layer(x)\n"
            "return x + sum(self.kept)",
            "self.kept = []\n" + STACK + "\nfor layer in self.layers:\n    layer.kept = self.kept",
            layer("self.kept.append(x)\nreturn self.up(x)"),
            0,
        ),
        "a global list that a layer fills": (
            "KEPT.clear()\nfor layer in self.layers:\n    x = layer(x)\nreturn x + sum(KEPT)",
            STACK,
            layer("KEPT.append(x)\nreturn self.up(x)") + "\n    KEPT = []\n",
            0,
        ),
        "a tensor of numbers": (
            LOOP,
            STACK,
            layer("return self.up(x) + torch.tensor([0.5] * 8, device=x.device)"),
            1,
        ),
        "one layer for all": (
            "for _ in range(8):\n    x = self.layers[0](self.layers[1](x))\nreturn x",
            STACK,
            PLAIN,
            1,
        ),
        "a shared weight": (
            LOOP,
            STACK + "\nfor layer in self.layers:\n    layer.up.weight = self.layers[0].up.weight",
            PLAIN,
            None,
        ),
        "calls from different lines": (
            "x = self.layers[0](x)\nx = self.layers[1](x)\nx = self.layers[2](x)\n"
            "for layer in self.layers[3:]:\n    x = layer(x)\nreturn x",
            STACK,
            PLAIN,
            1,
        ),
        "a Sequential": (
            "return self.layers(x)",
            STACK.replace("ModuleList([", "Sequential(*["),
            PLAIN,
            1,
        ),
        "a module that is called by a method": (
            LOOP,
            STACK,
            layer(
                "return self.up(self.bias.make(x))",
                "self.bias = Bias()",
            )
            + "\n    class Bias(nn.Module):\n"
            "        def __init__(self):\n            super().__init__()\n"
            "            self.b = nn.Parameter(torch.ones(8))\n"
            "        def make(self, x):\n            return x * self.b\n",
            1,
        ),
        "a number that forward reads": (
            LOOP,
            STACK,
            layer("return self.up(x) if mask is None or mask.sum() > 3 else x"),
            1,
        ),
        "a number in a buffer that forward reads": (
            LOOP,
            STACK,
            layer(
                "return self.up(x) * int(self.step)",
                "self.register_buffer('step', torch.tensor(index))",
            ),
            0,
        ),
        "masks that differ": (
            "masks = [torch.arange(8) > n for n in range(8)]\n"
            "for layer, mask in zip(self.layers, masks):\n    x = layer(x, mask)\nreturn x",
            STACK,
            layer("return self.up(x) if mask.sum() > 4 else x - 1"),
            1,  # which is found to read a number
        ),
        "fewer layers": (LOOP, STACK.replace("range(8)", "range(5)"), PLAIN, None),
    }.values(),
)
def test_the_program_is_the_one_of_tracing_each_layer(
    write: Write,
    repeated: list[RepeatedLayers],
    monkeypatch: pytest.MonkeyPatch,
    forward: str,
    init: str,
    classes: str,
    traced: int | None,
) -> None:
    problem = write(forward, init=init, classes=classes)
    graph = capture(problem)
    monkeypatch.setattr(capturing, "find_repeated_layers", lambda model: None)
    assert graph == capture(problem)
    if traced is None:
        assert not repeated
    else:
        assert sum(first is not None for first in repeated[0].first_calls) == traced


def test_dropout_draws_in_each_layer(write: Write, repeated: list[RepeatedLayers]) -> None:
    classes = layer("return self.up(self.drop(x))", "self.drop = nn.Dropout(0.5)")
    graph = capture(write(LOOP, init=STACK, classes=classes), "train")
    assert len(repeated[0].first_calls) == 1
    assert sum(op.name == "dropout" for op in graph.operations) == 8
