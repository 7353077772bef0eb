"""Decompositions written by hand, as small as they can be, for the gates to judge."""

import hashlib
import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from files_by_hand import by_original, component, composed, node, refactored


@dataclass
class Decomposition:
    """A directory that tests write, and then spoil."""

    directory: Path

    def write(self, path: str, text: str) -> None:
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def read(self, path: str) -> str:
        return (self.directory / path).read_text(encoding="utf-8")

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace text in one file; it has to be there."""
        text = self.read(path)
        assert old in text, f"{path} does not hold {old!r}"
        self.write(path, text.replace(old, new))

    def edit_everywhere(self, name: str, old: str, new: str) -> None:
        """Replace text in every copy of a component file."""
        paths = [path for path in self.directory.rglob(name) if path.is_file()]
        assert paths
        for path in paths:
            self.edit(path.relative_to(self.directory).as_posix(), old, new)

    def step(self, name: str, parent: str, children: list[str], text: str, weights: Any) -> None:
        """A step from component files that are there already."""
        self.write(f"steps/{name}/original.py", self.read(parent))
        for child in children:
            self.write(f"steps/{name}/children/{Path(child).name}", self.read(child))
        self.write(f"steps/{name}/refactored.py", text)
        self.write(f"steps/{name}/weight_map.json", json.dumps(by_original(weights)))

    def tree(self, nodes: dict[str, dict[str, Any]], unused: tuple[str, ...] = ()) -> None:
        original = (self.directory / "original.py").read_bytes()
        paths = [item["path"] for item in nodes.values()]
        levels = ("model", "layer", "fusion", "kernel")
        document = {
            "metadata": {
                "source_file": "original.py",
                "source_sha256": hashlib.sha256(original).hexdigest(),
                "source_level": "custom",
                "model_name": "Model",
                "kdrun_version": "0",
                "torch_version": "unknown",
                "capture": "fake",
                "total_components": len(set(paths)),
                "by_level": {n: sum(i["level"] == n for i in nodes.values()) for n in levels},
                "unique_kernels": 1,
                "kernel_instances": 1,
                "unused_weights": list(unused),
            },
            "nodes": {
                name: {"id": name, "instance_count": paths.count(item["path"]), **item}
                for name, item in nodes.items()
            },
            "data_flow": [],
        }
        self.write("decomposition_tree.json", json.dumps(document))

    def edit_tree(self, change: Any) -> None:
        """Apply a function to the tree's JSON."""
        document = json.loads(self.read("decomposition_tree.json"))
        change(document)
        self.write("decomposition_tree.json", json.dumps(document))


def lone_kernel(directory: Path) -> Decomposition:
    """A problem that is one kernel: softmax."""
    made = Decomposition(directory)
    made.write(
        "original.py",
        textwrap.dedent('''
        """Softmax."""

        import torch
        from torch import nn


        class Model(nn.Module):
            def forward(self, x):
                return torch.softmax(x, dim=1)


        def get_inputs():
            return [torch.rand(4, 16)]


        def get_init_inputs():
            return []
        '''),
    )
    kernel = "level_0_kernel/softmax_4x16_fp32.py"
    made.write(
        kernel, component("", "return torch.softmax(x, dim=1)", "torch.rand(4, 16)", "(4, 16)")
    )
    made.write(
        "verification/composition_test.py",
        composed(
            {"softmax_4x16_fp32": "Softmax"},
            "self.softmax = Softmax()",
            "return self.softmax(x)",
            {},
        ),
    )
    made.tree({"root": node(kernel, "kernel", [(4, 16)], [(4, 16)])})
    return made


def conv_relu(directory: Path, dtype: str = "float32") -> Decomposition:
    """A fusion of two kernels, as level 2 has them."""
    made = Decomposition(directory)
    to = "" if dtype == "float32" else f", dtype=torch.{dtype}"
    conv = f"self.conv = nn.Conv2d(3, 4, kernel_size=3{to})"
    made.write(
        "original.py",
        textwrap.dedent(f'''
        """A convolution and a ReLU."""

        import torch
        from torch import nn


        class Model(nn.Module):
            def __init__(self, channels):
                super().__init__()
                {conv}
                self.relu = nn.ReLU()

            def forward(self, x):
                return self.relu(self.conv(x))


        def get_inputs():
            return [torch.randn(2, 3, 8, 8{to})]


        def get_init_inputs():
            return [4]
        '''),
    )
    image, mapped = f"torch.randn(2, 3, 8, 8{to})", f"torch.randn(2, 4, 6, 6{to})"
    shape = "(2, 4, 6, 6)"
    fusion = "level_1_fusion/conv_relu.py"
    kernels = ["level_0_kernel/conv2d.py", "level_0_kernel/relu.py"]
    made.write(fusion, component(conv, "return F.relu(self.conv(x))", image, shape))
    made.write(kernels[0], component(conv, "return self.conv(x)", image, shape))
    made.write(kernels[1], component("", "return F.relu(x)", mapped, shape))
    weights = {"conv.conv.weight": "conv.weight", "conv.conv.bias": "conv.bias"}
    children = {"conv2d": "Conv2d", "relu": "Relu"}
    init = "self.conv = Conv2d()\nself.relu = Relu()"
    forward = "x = self.conv(x)\nreturn self.relu(x)"
    made.step(
        "step_1_conv_relu_to_kernel", fusion, kernels, refactored(children, init, forward), weights
    )
    made.write("verification/composition_test.py", composed(children, init, forward, weights))
    own = {"conv.weight": "conv.weight", "conv.bias": "conv.bias"}
    x, y = [(2, 3, 8, 8)], [(2, 4, 6, 6)]
    made.tree(
        {
            "root": node(
                fusion,
                "fusion",
                x,
                y,
                children=("root.conv", "root.relu"),
                weights=own,
                dtype=dtype,
            ),
            "root.conv": node(kernels[0], "kernel", x, y, weights=own, dtype=dtype),
            "root.relu": node(kernels[1], "kernel", y, y, dtype=dtype),
        }
    )
    return made


MODEL = '''
"""Two blocks with a residual each, and a head."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + self.norm(torch.relu(self.linear(x)))


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width), Block(width)])
        self.head = nn.Linear(width, 3)

    def forward(self, x, scale=None):
        for block in self.blocks:
            x = block(x)
        return {"hidden": x, "logits": [self.head(x[:, -1])]}


def get_inputs():
    return [torch.randn(2, 5, 8), None]


def get_init_inputs():
    return [8]
'''


def small_model(directory: Path) -> Decomposition:
    """A model of layers of fusions of kernels, whose output is a dict."""
    made = Decomposition(directory)
    made.write("original.py", MODEL)
    x, out = "torch.randn(2, 5, 8)", "(2, 5, 8)"
    block = "self.linear = nn.Linear(8, 8)\nself.norm = nn.LayerNorm(8)"
    k, f = "level_0_kernel", "level_1_fusion"
    paths = {
        "linear": f"{k}/linear_8x8_fp32.py",
        "relu": f"{k}/relu_2x5x8_fp32.py",
        "norm": f"{k}/layer_norm_8_fp32.py",
        "add": f"{k}/add_2x5x8_fp32.py",
        "head": f"{k}/linear_8x3_fp32.py",
        "fused": f"{f}/linear_relu_8x8_fp32.py",
        "block": "level_2_layer/block_8_fp32.py",
        "model": "level_3_model/model_fp32.py",
    }
    texts = {
        "linear": ("self.linear = nn.Linear(8, 8)", "return self.linear(x)", x, out, "x"),
        "relu": ("", "return torch.relu(x)", x, out, "x"),
        "norm": ("self.norm = nn.LayerNorm(8)", "return self.norm(x)", x, out, "x"),
        "add": ("", "return x + y", f"{x}, {x}", out, "x, y"),
        "head": (
            "self.head = nn.Linear(8, 3)",
            "return self.head(x)",
            "torch.randn(2, 5, 8)[:, -1]",
            "(2, 3)",
            "x",
        ),
        "fused": (
            "self.linear = nn.Linear(8, 8)",
            "return torch.relu(self.linear(x))",
            *(x, out, "x"),
        ),
        "block": (block, "return x + self.norm(torch.relu(self.linear(x)))", x, out, "x"),
    }
    for name, (init, forward, inputs, outputs, arguments) in texts.items():
        made.write(paths[name], component(init, forward, inputs, outputs, arguments))
    made.write(
        paths["model"],
        component(
            """
            self.linear_0 = nn.Linear(8, 8)
            self.norm_0 = nn.LayerNorm(8)
            self.linear_1 = nn.Linear(8, 8)
            self.norm_1 = nn.LayerNorm(8)
            self.head = nn.Linear(8, 3)
            """,
            """
            x = x + self.norm_0(torch.relu(self.linear_0(x)))
            x = x + self.norm_1(torch.relu(self.linear_1(x)))
            return x, self.head(x[:, -1])
            """,
            x,
            "(2, 5, 8), (2, 3)",
        ),
    )
    pairs = ("weight", "bias")
    made.step(
        "step_1_model_to_layer",
        paths["model"],
        [paths["block"], paths["head"]],
        refactored(
            {"block_8_fp32": "Block", "linear_8x3_fp32": "Head"},
            "self.block_0 = Block()\nself.block_1 = Block()\nself.head = Head()",
            "x = self.block_1(self.block_0(x))\nreturn x, self.head(x[:, -1])",
        ),
        {
            f"block_{n}.{m}.{w}": f"{m}_{n}.{w}"
            for n in (0, 1)
            for m in ("linear", "norm")
            for w in pairs
        }
        | {f"head.head.{w}": f"head.{w}" for w in pairs},
    )
    made.step(
        "step_2_block_to_fusion",
        paths["block"],
        [paths["fused"], paths["norm"], paths["add"]],
        refactored(
            {"linear_relu_8x8_fp32": "Fused", "layer_norm_8_fp32": "Norm", "add_2x5x8_fp32": "Add"},
            "self.fused = Fused()\nself.norm = Norm()\nself.add = Add()",
            "y = self.norm(self.fused(x))\nreturn self.add(x, y)",
        ),
        {f"fused.linear.{w}": f"linear.{w}" for w in pairs}
        | {f"norm.norm.{w}": f"norm.{w}" for w in pairs},
    )
    made.step(
        "step_3_linear_relu_to_kernel",
        paths["fused"],
        [paths["linear"], paths["relu"]],
        refactored(
            {"linear_8x8_fp32": "Linear", "relu_2x5x8_fp32": "Relu"},
            "self.linear = Linear()\nself.relu = Relu()",
            "return self.relu(self.linear(x))",
        ),
        {f"linear.linear.{w}": f"linear.{w}" for w in pairs},
    )
    made.write(
        "verification/composition_test.py",
        composed(
            {
                "linear_8x8_fp32": "Linear",
                "relu_2x5x8_fp32": "Relu",
                "layer_norm_8_fp32": "Norm",
                "add_2x5x8_fp32": "Add",
                "linear_8x3_fp32": "Head",
            },
            """
            self.linear = nn.ModuleList([Linear(), Linear()])
            self.norm = nn.ModuleList([Norm(), Norm()])
            self.relu = Relu()
            self.add = nn.ModuleList([Add(), Add()])
            self.head = Head()
            """,
            """
            for linear, norm, add in zip(self.linear, self.norm, self.add):
                x = add(x, norm(self.relu(linear(x))))
            return {"hidden": x, "logits": [self.head(x[:, -1])]}
            """,
            {
                f"{m}.{n}.{m}.{w}": f"blocks.{n}.{m}.{w}"
                for n in (0, 1)
                for m in ("linear", "norm")
                for w in pairs
            }
            | {f"head.head.{w}": f"head.{w}" for w in pairs},
            "x, scale=None",
        ),
    )
    s, h = (2, 5, 8), (2, 8)
    nodes: dict[str, Any] = {
        "root": node(
            paths["model"],
            "model",
            [s],
            [s, (2, 3)],
            children=("root.b0", "root.b1", "root.head"),
            weights={
                f"{m}_{n}.{w}": f"blocks.{n}.{m}.{w}"
                for n in (0, 1)
                for m in ("linear", "norm")
                for w in pairs
            }
            | {f"head.{w}": f"head.{w}" for w in pairs},
        ),
        "root.head": node(paths["head"], "kernel", [h], [(2, 3)])
        | {"input_strides": {"x0": [40, 1]}},
    }
    for n in (0, 1):
        b = f"root.b{n}"
        nodes[b] = node(paths["block"], "layer", [s], [s], children=(f"{b}.f", f"{b}.n", f"{b}.a"))
        nodes[f"{b}.f"] = node(
            paths["fused"], "fusion", [s], [s], children=(f"{b}.f.l", f"{b}.f.r")
        )
        nodes[f"{b}.f.l"] = node(paths["linear"], "kernel", [s], [s])
        nodes[f"{b}.f.r"] = node(paths["relu"], "kernel", [s], [s])
        nodes[f"{b}.n"] = node(paths["norm"], "kernel", [s], [s])
        nodes[f"{b}.a"] = node(paths["add"], "kernel", [s, s], [s])
    made.tree(nodes)
    return made
