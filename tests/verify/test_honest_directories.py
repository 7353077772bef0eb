"""Parents, steps, trees and files of an honest directory may be written in any style."""

import hashlib
import json

import pytest
from changing_files import COMPOSED, CONV, FUSION, REFACTORED, RELU, STEP
from decompositions_of_expressions import LINEAR, NORM, SOFTMAX, TANH, line, lone
from decompositions_of_expressions import RELU as RELU_STAGE
from verdicts import assert_passes

pytestmark = pytest.mark.long

INIT = "self.conv = Conv2d()\n        self.relu = Relu()"
BODY = "x = self.conv(x)\n        return self.relu(x)"
HEAD = "    def forward(self, x):"
SUPER = "super().__init__()"
WHOLE = "steps/step_1_whole_to_kernel"

PARENTS = {
    "one expression": [(BODY, "return self.relu(self.conv(x))")],
    "names for each value": [
        (BODY, "mapped = self.conv(x)\n        out = self.relu(mapped)\n        return out")
    ],
    "type hints": [(HEAD, "    def forward(self, x: torch.Tensor) -> torch.Tensor:")],
    "a hint of a value": [(BODY, "y: torch.Tensor = self.conv(x)\n        return self.relu(y)")],
    "a docstring": [(HEAD, f'{HEAD}\n        """Run both kernels."""')],
    "comments": [(BODY, f"# two kernels\n        {BODY}  # the last")],
    "the older super()": [(SUPER, "nn.Module.__init__(self)")],
    "a sequence": [
        (INIT, "self.both = nn.Sequential(Conv2d(), Relu())"),
        (BODY, "return self.both(x)"),
        ("conv.conv.", "both.0.conv."),
    ],
    "a loop over a sequence": [
        (INIT, "self.both = nn.Sequential(Conv2d(), Relu())"),
        (BODY, "for part in self.both:\n            x = part(x)\n        return x"),
        ("conv.conv.", "both.0.conv."),
    ],
    "a list of modules": [
        (INIT, "self.both = nn.ModuleList([Conv2d(), Relu()])"),
        (BODY, "for n, part in enumerate(self.both):\n            x = part(x)\n        return x"),
        ("conv.conv.", "both.0.conv."),
    ],
    "a list of modules by number": [
        (INIT, "self.both = nn.ModuleList([Conv2d(), Relu()])"),
        (BODY, "return self.both[1](self.both[0](x))"),
        ("conv.conv.", "both.0.conv."),
    ],
    "a range": [
        (INIT, "self.both = nn.ModuleList([Conv2d(), Relu()])"),
        (
            BODY,
            "for n in range(len(self.both)):\n            x = self.both[n](x)\n        return x",
        ),
        ("conv.conv.", "both.0.conv."),
    ],
    "a dict of modules": [
        (INIT, 'self.parts = nn.ModuleDict({"conv": Conv2d(), "relu": Relu()})'),
        (BODY, 'return self.parts["relu"](self.parts["conv"](x))'),
        ("conv.conv.", "parts.conv.conv."),
    ],
    "the values of a dict of modules": [
        (INIT, 'self.parts = nn.ModuleDict({"conv": Conv2d(), "relu": Relu()})'),
        (BODY, "for part in self.parts.values():\n            x = part(x)\n        return x"),
        ("conv.conv.", "parts.conv.conv."),
    ],
    "modules by add_module": [
        (INIT, 'self.add_module("conv", Conv2d())\n        self.add_module("relu", Relu())')
    ],
    "modules by setattr": [
        (
            INIT,
            "for n, part in enumerate((Conv2d, Relu)):\n            "
            'setattr(self, f"part_{n}", part())',
        ),
        (
            BODY,
            'for n in range(2):\n            x = getattr(self, f"part_{n}")(x)\n        return x',
        ),
        ("conv.conv.", "part_0.conv."),
    ],
    "modules by add_module in a loop": [
        (
            INIT,
            "for n, part in enumerate((Conv2d, Relu)):\n            "
            'self.add_module(f"part_{n}", part())',
        ),
        (
            BODY,
            'for n in range(2):\n            x = getattr(self, f"part_{n}")(x)\n        return x',
        ),
        ("conv.conv.", "part_0.conv."),
    ],
    "an iterator over children": [
        (
            BODY,
            "parts = iter((self.conv, self.relu))\n        x = next(parts)(x)\n"
            "        return next(parts)(x)",
        ),
    ],
    "a name for the class of tensors": [
        (HEAD, "    def forward(self, x: Tensor) -> Tensor:"),
        ("class ", "Tensor = torch.Tensor\n\n\nclass "),
    ],
    "a helper class": [
        (
            "class ",
            "class Chain:\n    def __init__(self, *parts):\n        self.parts = parts\n\n"
            "    def __call__(self, x):\n        for part in self.parts:\n            x = part(x)\n"
            "        return x\n\n\nclass ",
        ),
        (BODY, "return Chain(self.conv, self.relu)(x)"),
    ],
    "a class that is a sequence": [
        ("(nn.Module)", "(nn.Sequential)"),
        ("super().__init__()\n        " + INIT, "super().__init__(Conv2d(), Relu())"),
        (f"\n{HEAD}\n        {BODY}\n", ""),
        ("conv.conv.", "0.conv."),
    ],
    "a child in a local variable": [
        (BODY, "conv, relu = self.conv, self.relu\n        return relu(conv(x))")
    ],
    "a child that has a device's attribute as its name": [
        (INIT, "self.conv = Conv2d()\n        self.index = Relu()"),
        (BODY, "x = self.conv(x)\n        return self.index(x)"),
    ],
    "a child by keyword": [(BODY, "return self.relu(x=self.conv(x=x))")],
    "an assertion of a rank": [(BODY, f"assert x.ndim == 4\n        {BODY}")],
    "an assertion of sizes": [(BODY, f'assert x.shape[1] == 3, "three channels"\n        {BODY}')],
    "an error for a wrong rank": [
        (BODY, f'if x.dim() != 4:\n            raise ValueError("four dimensions")\n        {BODY}')
    ],
    "sizes and their quotients": [
        (BODY, f"b, c, h, w = x.shape\n        half = c // 2\n        {BODY}")
    ],
    "sizes and a view": [
        (BODY, f"b, c, h, w = x.size()\n        x = x.view(b, c, h, w)\n        {BODY}")
    ],
    "a view and back": [(BODY, f"x = x.flatten(2).unflatten(2, (8, 8))\n        {BODY}")],
    "no gradients": [(HEAD, f"    @torch.no_grad()\n{HEAD}")],
    "inference mode": [(HEAD, f"    @torch.inference_mode()\n{HEAD}")],
    "arguments that nobody gives": [(HEAD, "    def forward(self, x, **kwargs):")],
    "a helper method": [
        (
            BODY,
            "return self.both(x)\n\n    def both(self, x):\n        return self.relu(self.conv(x))",
        )
    ],
    "a helper method that takes a child": [
        (
            BODY,
            "return self.run(self.relu, self.run(self.conv, x))\n\n    "
            "def run(self, part, x):\n        return part(x)",
        )
    ],
    "a tuple on the way": [(BODY, "(x,) = (self.conv(x),)\n        return self.relu(x)")],
    "a list on the way": [
        (BODY, "kept = []\n        kept.append(self.conv(x))\n        return self.relu(kept[-1])")
    ],
    "a dict on the way": [
        (BODY, 'kept = {"y": self.conv(x)}\n        return self.relu(kept["y"])')
    ],
    "a number in the model": [
        (INIT, f"{INIT}\n        self.width = 8 // 2"),
        (BODY, f"assert self.width == 4\n        {BODY}"),
    ],
    "a property in an assertion": [
        (INIT, f"{INIT}\n        self.quarter = 1"),
        (
            BODY,
            f"assert self.width == 4\n        {BODY}\n\n    @property\n"
            "    def width(self):\n        return 4 * self.quarter",
        ),
    ],
    "a script's end": [
        ("import torch\n", "import torch\n\nif __name__ == '__main__':\n    print('PASS')\n")
    ],
    "a count": [
        (
            BODY,
            "n = 0\n        while n < 2:\n            "
            "x = self.conv(x) if n == 0 else self.relu(x)\n            n += 1\n        return x",
        )
    ],
    "an early deletion": [(BODY, "y = self.conv(x)\n        del x\n        return self.relu(y)")],
}


@pytest.mark.parametrize("variation", PARENTS)
def test_a_parent_may_be_written_in_any_style(variation, fusion, judged):
    """Both parents are: the step's and the composed model."""
    for old, new in PARENTS[variation]:
        if old.startswith("conv.conv."):
            fusion.edit(COMPOSED, f"'{old}", f"'{new}")
            fusion.edit(f"{STEP}/weight_map.json", old, new)
        else:
            fusion.edit(COMPOSED, old, new)
            fusion.edit(REFACTORED, old, new)

    assert_passes(judged(fusion, trials=1))


IMPORTS = {
    "the package's module": (
        "from children.relu import Model as Relu",
        "from children import relu",
    ),
    "a module by another name": (
        "from children.relu import Model as Relu",
        "import children.relu as relu",
    ),
}
CLASSES = {"an attribute": "relu.Model()", "getattr": 'getattr(relu, "Model")()'}


@pytest.mark.parametrize("name", IMPORTS)
@pytest.mark.parametrize("cls", CLASSES)
def test_a_child_may_be_imported_as_a_module(name, cls, fusion, judged):
    fusion.edit(REFACTORED, *IMPORTS[name])
    fusion.edit(REFACTORED, "Relu()", CLASSES[cls])

    assert_passes(judged(fusion, trials=1))


DIRECTORIES = {}


def vary(name):
    """Add the function below to the variations of whole directories."""
    return lambda change: DIRECTORIES.setdefault(name, change)


EXTRA = {
    "README.md": "# A decomposition\n",
    ".gitkeep": "",
    ".gitignore": "__pycache__/\n",
    "LICENSE": "MIT\n",
    "notes/how.txt": "by hand\n",
    "requirements.txt": "torch\n",
    "__init__.py": "",
    "level_0_kernel/__init__.py": "",
    "level_0_kernel/README.md": "kernels\n",
    "steps/README.md": "steps\n",
    "steps/__init__.py": "",
    "verification/__init__.py": "",
    "verification/test_results.json": "{}\n",
    "result.json": '{"status": "unknown"}\n',
    "pyproject.toml": "[tool.ruff]\nline-length = 99\n",
    "mypy.ini": "[mypy]\nstrict = true\n",
    "ruff.toml": "line-length = 99\n",
    "setup.cfg": "[metadata]\nname = parts\n",
    "make.py": "print('made by hand')\n",
    "tools/draw.py": "print('a picture')\n",
    "run.sh": "#!/bin/sh\nexit 0\n",
    "decomposition_analysis.md": "# By hand\n",
}


@vary("with files that are no part of it")
def _(made):
    for extra, content in EXTRA.items():
        made.write(extra, content)


@vary("a tree on many lines")
def _(made):
    made.write("decomposition_tree.json", json.dumps(tree_of(made), indent=4, sort_keys=True))


@vary("a tree on one line")
def _(made):
    made.write("decomposition_tree.json", json.dumps(tree_of(made), separators=(",", ":")))


@vary("a tree that ends in white space")
def _(made):
    made.write("decomposition_tree.json", f"\n{made.read('decomposition_tree.json')}\n\n")


@vary("nodes in another order")
def _(made):
    made.edit_tree(lambda tree: tree.update(nodes=dict(reversed(tree["nodes"].items()))))


@vary("no metadata, no data flow")
def _(made):
    made.edit_tree(lambda tree: (tree.pop("metadata"), tree.pop("data_flow")))


@vary("no names of nodes")
def _(made):
    def change(tree):
        for node in tree["nodes"].values():
            del node["name"], node["instance_count"]

    made.edit_tree(change)


@vary("no strides in the tree but of what is no row")
def _(made):
    def change(tree):
        for name, node in tree["nodes"].items():
            if name != "root.head":
                node.pop("input_strides")

    made.edit_tree(change)


@vary("other ids of nodes")
def _(made):
    text = made.read("decomposition_tree.json")
    for old in sorted(tree_of(made)["nodes"], key=len, reverse=True):
        if old != "root":
            text = text.replace(f'"{old}"', f'"{old.replace("root.", "n_").replace(".", "-")}"')
    made.write("decomposition_tree.json", text)


@vary("more in the tree than is asked for")
def _(made):
    def change(tree):
        tree["author"] = {"name": "somebody", "year": 2031}
        for node in tree["nodes"].values():
            node.update(description="by hand", flops=12, tags=["a"])

    made.edit_tree(change)


@vary("other names of steps")
def _(made):
    for number, folder in enumerate(sorted((made.directory / "steps").iterdir())):
        folder.rename(folder.with_name(f"taking apart {number}"))


@vary("weight maps on many lines, by name")
def _(made):
    for path in (made.directory / "steps").glob("*/weight_map.json"):
        path.write_text(json.dumps(json.loads(path.read_text()), indent=2, sort_keys=True))


@vary("weight maps with lists of one name")
def _(made):
    for path in (made.directory / "steps").glob("*/weight_map.json"):
        names = json.loads(path.read_text())
        path.write_text(
            json.dumps({k: v if isinstance(v, list) else [v] for k, v in names.items()})
        )


@vary("no end of the last line of a file of JSON")
def _(made):
    for path in made.directory.rglob("*.json"):
        path.write_text(path.read_text().rstrip("\n"))


@vary("lines that end as on Windows")
def _(made):
    for path in made.directory.rglob("*.py"):
        if path.name != "original.py" or path.parent.parent.name == "steps":
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@vary("a first line for Unix")
def _(made):
    made.write(COMPOSED, f"#!/usr/bin/env python3\n{made.read(COMPOSED)}")


@vary("a composition that compares by itself")
def _(made):
    text = "\n\ndef run_tests():\n    assert ComposedModel() is not None\n\n\n"
    end = 'if __name__ == "__main__":\n    run_tests()\n    print("PASS")\n'
    made.write(COMPOSED, made.read(COMPOSED) + text + end)


@vary("steps that compare by themselves")
def _(made):
    for path in (made.directory / "steps").glob("*/refactored.py"):
        end = '\n\nif __name__ == "__main__":\n    RefactoredModel()\n    print("PASS")\n'
        path.write_text(path.read_text() + end)


@vary("steps without get_init_inputs()")
def _(made):
    for path in (made.directory / "steps").glob("*/refactored.py"):
        path.write_text(path.read_text().replace("\n\ndef get_init_inputs():\n    return []\n", ""))


def tree_of(made):
    return json.loads(made.read("decomposition_tree.json"))


@pytest.mark.parametrize("variation", DIRECTORIES)
def test_a_directory_may_hold_its_files_in_any_way(variation, fusion, judged):
    DIRECTORIES[variation](fusion)

    assert_passes(judged(fusion, trials=1))


def test_a_directory_of_four_levels_may_be_varied_in_all_ways_at_once(model, judged):
    for change in DIRECTORIES.values():
        change(model)

    assert_passes(judged(model, trials=1))


def test_a_kernel_may_write_into_a_copy_of_its_input(tmp_path, judged):
    made = line(tmp_path, [LINEAR, ("write", "", "x.clone()"), TANH])
    write = "x[:, 0] = 1.0"
    for path in ("original.py", "level_1_fusion/whole.py", f"{WHOLE}/original.py"):
        made.edit(path, "x = x.clone()", write)
    made.edit_everywhere(
        "write.py", "return x.clone()", f"x = x.clone()\n        {write}\n        return x"
    )
    digest = hashlib.sha256(made.read("original.py").encode()).hexdigest()
    made.edit_tree(lambda tree: tree["metadata"].update(source_sha256=digest))

    assert_passes(judged(made, trials=1))


TWO = "(torch.tanh(x), x[:2])"
STRUCTURES = {
    "a tuple": ("return {}, {}", "(self.tanh(x), x)"),
    "a list": ("return [{}, {}]", "[self.tanh(x), x]"),
    "a dict": ('return {{"a": {}, "b": {}}}', '{"a": self.tanh(x), "b": x}'),
    "a dict by call": ("return dict(a={}, b={})", "dict(a=self.tanh(x), b=x)"),
    "a tuple of a tuple": ("return ({}, ({},))", "(self.tanh(x), (x,))"),
    "a dict of a list": ('return {{"a": [{}, {}]}}', '{"a": [self.tanh(x), x]}'),
    "a tuple of None": ("return {}, None, {}", "(self.tanh(x), None, x)"),
}


@pytest.mark.parametrize("structure", STRUCTURES)
def test_outputs_may_have_any_structure(structure, tmp_path, judged):
    original, composed = STRUCTURES[structure]
    made = line(tmp_path / "made", [RELU_STAGE, TANH])
    made.edit(
        "original.py", "x = torch.tanh(x)\n        return x", original.format("torch.tanh(x)", "x")
    )
    pair = "return torch.tanh(x), x"
    for path in ("level_1_fusion/whole.py", "steps/step_1_whole_to_kernel/original.py"):
        made.edit(path, "x = torch.tanh(x)\n        return x", pair)
        made.edit(path, "return [(4, 16)]", "return [(4, 16), (4, 16)]")
        made.edit(
            path,
            RUN,
            "assert [tuple(y.shape) for y in Model()(*get_inputs())] == [(4, 16), (4, 16)]",
        )
    loop = "for stage in self.stages:\n            x = stage(x)\n        return x"
    for path, returned in (
        (COMPOSED, composed),
        ("steps/step_1_whole_to_kernel/refactored.py", "(self.tanh(x), x)"),
    ):
        made.edit(
            path,
            "self.stages = nn.ModuleList([Relu(), Tanh()])",
            "self.relu, self.tanh = Relu(), Tanh()",
        )
        made.edit(path, loop, f"x = self.relu(x)\n        return {returned}")
    made.edit_tree(lambda tree: tree["metadata"].pop("source_sha256"))
    made.edit_tree(
        lambda tree: tree["nodes"]["root"].update(
            output_shapes={"y0": [4, 16], "y1": [4, 16]},
            output_dtypes={"y0": "float32", "y1": "float32"},
        )
    )

    assert_passes(judged(made, trials=1))


RUN = "assert tuple(Model()(*get_inputs()).shape) == get_expected_output_shape()[0]"
LINES = {
    "two kernels": [LINEAR, RELU_STAGE],
    "a kernel that is used twice": [LINEAR, RELU_STAGE, LINEAR],
    "three linear layers with activations": [LINEAR, TANH, LINEAR, RELU_STAGE, LINEAR],
    "a norm before and after": [NORM, LINEAR, TANH, NORM],
    "an output head": [NORM, LINEAR, SOFTMAX],
}


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("stages", LINES)
def test_lines_of_kernels_pass_in_both_modes(stages, mode, tmp_path, judged):
    made = line(tmp_path / "made", LINES[stages])

    assert_passes(judged(made, trials=1, mode=mode))


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_a_table_of_the_model_is_a_buffer_of_its_kernel(persistent, mode, tmp_path, judged):
    init = f"self.register_buffer('scale', torch.arange(16.0), persistent={persistent})"
    made = lone(tmp_path / "made", "x * self.scale", init=init, weights=("scale",))

    assert_passes(judged(made, trials=1, mode=mode))


@pytest.mark.parametrize("layer", ["RNN", "GRU", "LSTM"])
def test_a_layer_that_has_its_weights_in_a_list_too(layer, tmp_path, judged):
    """The second trial gives each weight other values; both places show them."""
    weights = tuple(f"rnn.{kind}_{of}_l0" for kind in ("weight", "bias") for of in ("ih", "hh"))
    init = f"self.rnn = nn.{layer}(16, 16)"
    made = lone(tmp_path / "made", "self.rnn(x)[0]", init=init, weights=weights)

    assert_passes(judged(made, trials=2))


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize(
    "spelled",
    ["F.dropout(x, {}, self.training)", "nn.functional.dropout(x, p={}, training=self.training)"],
)
def test_dropout_in_training_draws_what_the_original_draws(rate, spelled, tmp_path, judged):
    made = lone(tmp_path / "made", spelled.format(rate))

    assert_passes(judged(made, trials=1, mode="train"))


def test_a_fusion_may_be_written_in_modules(fusion, judged):
    for path in (FUSION, f"{STEP}/original.py"):
        fusion.edit(path, "kernel_size=3)", "kernel_size=3)\n        self.act = nn.ReLU()")
        fusion.edit(path, "F.relu(self.conv(x))", "self.act(self.conv(x))")

    assert_passes(judged(fusion, trials=1))


def test_activations_in_place_are_written_as_the_author_wrote_them(fusion, judged):
    fusion.edit("original.py", "nn.ReLU()", "nn.ReLU(inplace=True)")
    fusion.edit_tree(lambda tree: tree["metadata"].pop("source_sha256"))

    assert_passes(judged(fusion, trials=1))


@pytest.mark.parametrize("path", [CONV, RELU])
def test_every_kernel_may_be_renamed(path, fusion, judged):
    old, new = path.rpartition("/")[2].removesuffix(".py"), "my_own_kernel_v2"
    for file in list(fusion.directory.rglob(f"{old}.py")):
        file.rename(file.with_name(f"{new}.py"))
    fusion.edit(REFACTORED, f"children.{old} ", f"children.{new} ")
    fusion.edit(COMPOSED, f'"{old}"', f'"{new}"')
    fusion.edit("decomposition_tree.json", path, f"level_0_kernel/{new}.py")

    assert_passes(judged(fusion, trials=1))
