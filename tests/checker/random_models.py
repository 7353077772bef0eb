"""Writes random models as problem files: whatever their shapes allow, with what makes trouble.

A writer keeps the values that exist with their shapes and dtypes, and adds one statement after
another. `pick` chooses among options; a test gives it hypothesis' choice, so that failures shrink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeVar

T = TypeVar("T")
Pick = Callable[[Sequence[T]], T]
Shape = tuple[int, ...]

LARGEST = 600
"""Elements of any value."""


@dataclass(frozen=True)
class Value:
    """A variable in `forward`."""

    name: str
    shape: Shape
    dtype: str = "float32"

    @property
    def floating(self) -> bool:
        return self.dtype in {"float32", "float64", "bfloat16"}


@dataclass
class Writer:
    """One class in the making."""

    pick: Pick  # type: ignore[type-arg]
    classes: list[str]
    """The text of finished classes, the innermost first."""
    depth: int
    init: list[str] = field(default_factory=list)
    forward: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    own: dict[str, Shape] = field(default_factory=dict)
    """Linear layers by attribute: (in, out)."""
    blocks: dict[str, Shape] = field(default_factory=dict)
    """Lists of blocks by attribute: the shape that they keep."""
    protected: set[str] = field(default_factory=set)
    """Variables whose storage somebody else may own: never written to."""

    # --- values -----------------------------------------------------------------------------------

    def new(self, text: str, shape: Shape, dtype: str = "float32", name: str = "") -> Value:
        value = Value(name or f"v{len(self.forward)}", shape, dtype)
        self.forward.append(f"{value.name} = {text}")
        self.values.append(value)
        return value

    def any_value(self, suits: Callable[[Value], bool] = lambda v: True) -> Value | None:
        """A value, recent ones first: what is written last is the main line."""
        found = [v for v in self.values if suits(v)][-5:]
        return self.pick(found[::-1]) if found else None

    def floats(self, rank: int = 0) -> Value | None:
        return self.any_value(lambda v: v.dtype == "float32" and len(v.shape) >= rank)

    def attribute(self, kind: str, text: str) -> str:
        name = f"{kind}{len(self.init)}"
        self.init.append(f"self.{name} = {text}")
        return name

    # --- statements -------------------------------------------------------------------------------

    def step(self) -> None:
        """One more statement, if it fits."""
        self.pick(STATEMENTS)(self)

    def linear(self) -> None:
        x = self.floats(1)
        if x is None:
            return
        reused = [n for n, (wide, _) in self.own.items() if wide == x.shape[-1]]
        if reused and self.pick([True, False]):
            name = self.pick(reused)
        else:
            out = self.pick([4, x.shape[-1], 6])
            bias = self.pick(["", ", bias=False"])
            name = self.attribute("fc", f"nn.Linear({x.shape[-1]}, {out}{bias})")
            self.own[name] = (x.shape[-1], out)
        wide, out = self.own[name]
        how = self.pick(["module", "module", "weight", "matmul"])
        if how == "matmul" and len(x.shape) > 1 and out == wide:
            self.new(f"{x.name} @ self.{name}.weight", x.shape)
        elif how == "weight":
            self.new(f"F.linear({x.name}, self.{name}.weight)", (*x.shape[:-1], out))
        else:
            self.new(f"self.{name}({x.name})", (*x.shape[:-1], out))

    def normalization(self) -> None:
        x = self.floats(2)
        if x is None:
            return
        kinds = [f"nn.LayerNorm({x.shape[-1]})", f"nn.RMSNorm({x.shape[-1]})"]
        if len(x.shape) in {2, 3}:
            kinds.append(f"nn.BatchNorm1d({x.shape[1]})")
        if len(x.shape) == 3:
            kinds.append(f"nn.Conv1d({x.shape[1]}, {x.shape[1]}, 3, padding=1)")
        self.new(f"self.{self.attribute('layer', self.pick(kinds))}({x.name})", x.shape)

    def sequential(self) -> None:
        x = self.floats(1)
        if x is None:
            return
        n = x.shape[-1]
        act = self.pick(["nn.ReLU()", "nn.GELU()", "nn.ReLU(inplace=True)", "nn.Dropout(0.1)"])
        text = f"nn.Sequential(nn.Linear({n}, 5), {act}, nn.Linear(5, {n}))"
        self.new(f"self.{self.attribute('mlp', text)}({x.name})", x.shape)

    def tensor_of_its_own(self) -> None:
        x = self.floats(1)
        if x is None:
            return
        made = self.pick([
            ("scale", "nn.Parameter(torch.randn({n}))"),
            ("shift", "nn.Parameter(torch.zeros({n}))"),
            ("steps", "torch.arange({n}, dtype=torch.float32)"),
        ])  # fmt: skip
        name = self.attribute(made[0], made[1].format(n=x.shape[-1]))
        if self.pick([True, False]):
            buffer = f"table{len(self.init)}"
            self.init.append(f'self.register_buffer("{buffer}", torch.ones({x.shape[-1]}) / 3)')
            self.new(f"{x.name} * self.{name} + self.{buffer}", x.shape)
        else:
            self.new(f"{x.name} {self.pick('*+-')} self.{name}", x.shape)

    def pointwise(self) -> None:
        x = self.any_value(lambda v: v.floating)
        if x is not None:
            text = self.pick(POINTWISE).format(x=x.name)
            self.new(text, x.shape, x.dtype)

    def meeting(self) -> None:
        """Two values of one shape: residuals, gates, and a value with itself."""
        x = self.any_value(lambda v: v.floating)
        if x is None:
            return
        y = self.any_value(lambda v: v.shape == x.shape and v.dtype == x.dtype)
        assert y is not None
        text = self.pick(["{x} + {y}", "{x} * {y}", "{x} - 2 * {y}", "torch.maximum({x}, {y})",
                          "{x} * {y}.sigmoid()", "torch.where({x} > 0, {x}, {y})"])  # fmt: skip
        self.new(text.format(x=x.name, y=y.name), x.shape, x.dtype)

    def product(self) -> None:
        x = self.floats(2)
        if x is None or prod(x.shape[:-1]) * x.shape[-2] > LARGEST:
            return
        y = self.any_value(lambda v: v.shape == x.shape and v.dtype == "float32")
        assert y is not None
        scores = self.new(f"{x.name} @ {y.name}.transpose(-1, -2)", (*x.shape[:-1], x.shape[-2]))
        if self.pick([True, False]):
            weights = self.new(f"torch.softmax({scores.name} * 0.5, dim=-1)", scores.shape)
            self.new(f"{weights.name} @ {x.name}", x.shape)

    def view(self) -> None:
        x = self.any_value(lambda v: len(v.shape) >= 1)
        if x is None:
            return
        n, last, rank = x.name, x.shape[-1], len(x.shape)
        ways: list[tuple[str, Shape]] = [
            (f"{n}.unsqueeze(1)", (x.shape[0], 1, *x.shape[1:])),
            (f"{n}.reshape(-1)", (prod(x.shape),)),
            (f"{n}.flatten(0)", (prod(x.shape),)),
            (f"{n}[0]", x.shape[1:]),
            (f"{n}[..., : {max(1, last // 2)}]", (*x.shape[:-1], max(1, last // 2))),
            (f"{n}[..., ::2]", (*x.shape[:-1], (last + 1) // 2)),
            (f"{n}.unsqueeze(0).expand(2, {', '.join(['-1'] * rank)})", (2, *x.shape)),
        ]
        if rank > 1:
            ways += [
                (f"{n}.transpose(0, -1)", (last, *x.shape[1:-1], x.shape[0])),
                (f"{n}.transpose(0, 1).contiguous()", (x.shape[1], x.shape[0], *x.shape[2:])),
                (f"{n}.flatten(-2)", (*x.shape[:-2], x.shape[-2] * last)),
                (f"{n}.movedim(0, -1)", (*x.shape[1:], x.shape[0])),
            ]
        if last % 2 == 0:
            ways.append((f"{n}.unflatten(-1, (2, -1))", (*x.shape[:-1], 2, last // 2)))
        text, shape = self.pick(ways)
        if prod(shape) <= LARGEST and len(shape) <= 5:
            self.new(text, shape, x.dtype)

    def pieces(self) -> None:
        x = self.any_value(lambda v: len(v.shape) >= 1 and v.shape[-1] % 2 == 0)
        if x is None:
            return
        a, b = f"a{len(self.forward)}", f"b{len(self.forward)}"
        half = (*x.shape[:-1], x.shape[-1] // 2)
        self.forward.append(f"{a}, {b} = {x.name}.chunk(2, dim=-1)")
        self.values += [Value(a, half, x.dtype), Value(b, half, x.dtype)]

    def join(self) -> None:
        x = self.any_value(lambda v: len(v.shape) >= 1 and prod(v.shape) * 2 <= LARGEST)
        if x is None:
            return
        y = self.any_value(lambda v: v.shape == x.shape and v.dtype == x.dtype)
        assert y is not None
        if self.pick([True, False]):
            self.new(f"torch.cat([{x.name}, {y.name}], dim=-1)",
                     (*x.shape[:-1], 2 * x.shape[-1]), x.dtype)  # fmt: skip
        else:
            self.new(f"torch.stack([{x.name}, {y.name}])", (2, *x.shape), x.dtype)

    def reduction(self) -> None:
        x = self.any_value(lambda v: v.dtype in {"float32", "float64"} and len(v.shape) >= 1)
        if x is None:
            return
        less, kept = x.shape[:-1], (*x.shape[:-1], 1)
        way, shape, dtype = self.pick([
            ("{x}.sum(dim=-1)", less, x.dtype),
            ("{x}.mean(dim=-1, keepdim=True)", kept, x.dtype),
            ("{x}.amax(dim=-1, keepdim=True)", kept, x.dtype),
            ("{x}.argmax(dim=-1)", less, "int64"),
            ("{x}.max(dim=-1)[0]", less, x.dtype),
            ("torch.cumsum({x}, dim=0)", x.shape, x.dtype),
            ("{x} / {x}.norm(dim=-1, keepdim=True)", x.shape, x.dtype),
            ("torch.logsumexp({x}, dim=-1)", less, x.dtype),
        ])  # fmt: skip
        self.new(way.format(x=x.name), shape, dtype)

    def write(self) -> None:
        """In place: on a value that is nobody else's, or on a part of it."""
        x = self.any_value(lambda v: v.floating and len(v.shape) >= 1)
        if x is None:
            return
        own = self.new(f"{x.name}.clone()", x.shape, x.dtype)
        n = own.name
        if self.pick([True, False]):  # a view that sees what is written after it
            seen = self.new(f"{n}[..., :1]", (*x.shape[:-1], 1), x.dtype)
            self.protected.add(seen.name)
        lines = ["{n}.mul_(2.0)", "{n} += 1", "{n}.relu_()", "{n}[0] = 0.5", "{n}[..., :1].add_(3)",
                 "{n}[..., 0] = {n}[..., -1]", "{n}.clamp_(min=-1.0)", "{n}[..., ::2].neg_()",
                 "{n}[:1] *= {x}[:1]"]  # fmt: skip
        for line in {self.pick(lines), self.pick(lines)}:
            self.forward.append(line.format(n=n, x=x.name))

    def cast(self) -> None:
        x = self.any_value(lambda v: v.floating)
        if x is None:
            return
        way, dtype = self.pick([
            ("{x}.double()", "float64"), ("{x}.to(torch.bfloat16)", "bfloat16"),
            ("{x}.float()", "float32"), ("{x} > 0.1", "bool"), ("{x}.type_as({x})", x.dtype),
            ("({x} * 4).long().clamp(0, 3)", "int64"),
        ])  # fmt: skip
        self.new(way.format(x=x.name), x.shape, dtype)

    def by_index(self) -> None:
        ids = self.any_value(lambda v: v.dtype == "int64" and len(v.shape) <= 3)
        if ids is None:
            return
        if self.pick([True, False]) and prod(ids.shape) * 4 <= LARGEST:
            name = self.attribute("embed", "nn.Embedding(16, 4)")
            self.new(f"self.{name}({ids.name}.clamp(0, 15))", (*ids.shape, 4))
        else:
            self.new(f"{ids.name}.float() + 1", ids.shape)

    def mask(self) -> None:
        x = self.any_value(lambda v: v.dtype == "float32" and len(v.shape) >= 2)
        if x is None:
            return
        rows, columns = x.shape[-2:]
        made = self.pick([
            "torch.ones({r}, {c}).tril() == 0", "torch.arange({c}) > 1",
            "torch.eye({r}, {c}, dtype=torch.bool)", "torch.zeros({r}, {c}, dtype=torch.bool)",
            "{x} > 0",
        ]).format(r=rows, c=columns, x=x.name)  # fmt: skip
        mask = f"mask{len(self.forward)}"
        self.forward.append(f"{mask} = {made}")
        self.new(f"{x.name}.masked_fill({mask}, {self.pick(['-1.0', '0.0'])})", x.shape)

    def blocks_again(self) -> None:
        """A list of equal blocks, run in a row; or one of them once more."""
        x = self.floats(2)
        if x is None or self.depth >= 2:
            return
        known = [name for name, shape in self.blocks.items() if shape == x.shape]
        if known and self.pick([True, False]):
            self.new(f"self.{self.pick(known)}[0]({x.name})", x.shape)
            return
        cls = block(self.pick, self.classes, x.shape, self.depth + 1)
        count = self.pick([1, 2, 3])
        name = f"blocks{len(self.init)}"
        container = self.pick(["ModuleList", "Sequential"])
        several = f"{cls}() for _ in range({count})"
        self.init.append(
            f"self.{name} = nn.ModuleList({several})"
            if container == "ModuleList"
            else f"self.{name} = nn.Sequential(*[{several}])"
        )
        self.blocks[name] = x.shape
        if container == "Sequential":
            self.new(f"self.{name}({x.name})", x.shape)
        else:
            out = f"h{len(self.forward)}"
            self.forward += [f"{out} = {x.name}", f"for block in self.{name}:",
                             f"    {out} = block({out})"]  # fmt: skip
            self.values.append(Value(out, x.shape))

    def branch(self) -> None:
        x = self.floats(1)
        if x is None:
            return
        flag = self.attribute("flag", self.pick(["True", "False"]))
        out = f"c{len(self.forward)}"
        self.forward += [
            f"if self.{flag} and {x.name}.shape[0] > {self.pick([0, 2])}:",
            f"    {out} = torch.tanh({x.name})",
            "else:",
            f"    {out} = {x.name} * 0.5",
        ]
        self.values.append(Value(out, x.shape))

    def library(self) -> None:
        """Modules that run as one operation, or as many."""
        x = self.any_value(lambda v: v.dtype == "float32" and len(v.shape) == 3)
        if x is None:
            return
        n = x.shape[-1]
        kinds = [
            ("rnn", f"nn.GRU({n}, 5, batch_first=True)", "self.{m}({x})[0]", 5),
            ("rnn", f"nn.LSTM({n}, 3, bidirectional=True)", "self.{m}({x})[0]", 6),
            ("attn", f"nn.MultiheadAttention({n}, 1, batch_first=True)",
             "self.{m}({x}, {x}, {x}, need_weights=False)[0]", n),
            ("layer", f"nn.TransformerEncoderLayer({n}, 1, 8, batch_first=True)", "self.{m}({x})",
             n),
        ]  # fmt: skip
        kind, made, call, last = self.pick(kinds)
        text = call.format(m=self.attribute(kind, made), x=x.name)
        self.new(text, (*x.shape[:-1], last))

    def image(self) -> None:
        x = self.any_value(lambda v: v.dtype == "float32" and len(v.shape) == 4)
        if x is None:
            return
        n, channels, rows, columns = x.shape
        same: list[tuple[str, Shape]] = [
            (f"nn.Conv2d({channels}, 4, 3, padding=1)", (n, 4, rows, columns)),
            (f"nn.Conv2d({channels}, {channels}, 1, groups={channels})", x.shape),
            (f"nn.BatchNorm2d({channels})", x.shape),
            (f"nn.GroupNorm(1, {channels})", x.shape),
            ("nn.AdaptiveAvgPool2d(2)", (n, channels, 2, 2)),
            ("nn.Upsample(scale_factor=2)", (n, channels, 2 * rows, 2 * columns)),
        ]
        if rows > 1 and columns > 1:
            same.append(("nn.MaxPool2d(2)", (n, channels, rows // 2, columns // 2)))
        made, shape = self.pick(same)
        if prod(shape) <= LARGEST:
            self.new(f"self.{self.attribute('image', made)}({x.name})", shape)

    def contraction(self) -> None:
        x = self.floats(2)
        if x is None or len(x.shape) > 4:
            return
        letters = "abcd"[: len(x.shape)]
        y = self.any_value(lambda v: v.shape == x.shape and v.dtype == "float32")
        assert y is not None
        equation, shape = self.pick([
            (f"{letters},{letters}->{letters[:-1]}", x.shape[:-1]),
            (f"{letters}->{letters[::-1]}", x.shape[::-1]),
            (f"{letters},{letters[:-1]}z->{letters[:-1]}", x.shape[:-1]),
        ])  # fmt: skip
        self.new(f'torch.einsum("{equation}", {x.name}{f", {y.name}" if "," in equation else ""})',
                 shape)  # fmt: skip

    def ordered(self) -> None:
        """Results that come in pairs, and what reads by them."""
        x = self.floats(1)
        if x is None or x.shape[-1] < 2:
            return
        number = len(self.forward)
        found, places = f"found{number}", f"places{number}"
        how = self.pick(["torch.topk({x}, 2, dim=-1)", "torch.sort({x}, dim=-1)"])
        shape = (*x.shape[:-1], 2) if "topk" in how else x.shape
        self.forward.append(f"{found}, {places} = {how.format(x=x.name)}")
        self.values += [Value(places, shape, "int64"), Value(found, shape)]
        if self.pick([True, False]):
            self.new(f"torch.gather({x.name}, -1, {places})", shape)

    def ends_with(self) -> None:
        """What the class says when it is done."""
        names = [v.name for v in self.values]
        last = names[-1]
        some = names[-3:]
        self.forward.append(
            "return "
            + self.pick(
                [
                    last,
                    last,
                    ", ".join(some),
                    f"[{', '.join(some)}]",
                    f'{{"out": {last}, "rest": ({names[0]}, {names[-2:][0]})}}',
                    f"({last}, None, 3)",
                ]
            )
        )

    def text(self, name: str, arguments: Sequence[str]) -> str:
        lines = [f"class {name}(nn.Module):", "    def __init__(self):",
                 "        super().__init__()"]  # fmt: skip
        lines += [f"        {line}" for line in self.init]
        lines += ["", f"    def forward(self, {', '.join(arguments)}):"]
        return "\n".join([*lines, *(f"        {line}" for line in self.forward)])


POINTWISE = [
    "torch.relu({x})", "torch.tanh({x})", "F.gelu({x})", "F.silu({x})", "{x} * torch.sigmoid({x})",
    "{x} * 2.0 + 1", "{x}.abs().sqrt()", "-{x}", "torch.softmax({x}.flatten(), 0).view_as({x})",
    "F.dropout({x}, 0.2, self.training)", "{x}.pow(2)", "1 - {x}",
    "torch.sin({x}) + torch.cos({x})",
    "{x} * torch.rsqrt({x}.pow(2).mean() + 1e-6)", "F.leaky_relu({x}, 0.2)", "{x}.clamp(-2, 2)",
    "{x} / 3", "{x} + torch.ones_like({x})", "0.5 * {x} * (1 + torch.erf({x} / 1.41421356))",
]  # fmt: skip

STATEMENTS: list[Callable[[Writer], None]] = [
    Writer.linear, Writer.linear, Writer.pointwise, Writer.pointwise, Writer.meeting,
    Writer.meeting, Writer.normalization, Writer.sequential, Writer.tensor_of_its_own,
    Writer.product, Writer.view, Writer.view, Writer.pieces, Writer.join, Writer.reduction,
    Writer.write, Writer.cast, Writer.by_index, Writer.mask, Writer.blocks_again,
    Writer.blocks_again, Writer.branch, Writer.library, Writer.image, Writer.image,
    Writer.contraction, Writer.ordered,
]  # fmt: skip


def block(pick: Pick, classes: list[str], shape: Shape, depth: int) -> str:  # type: ignore[type-arg]
    """A class that keeps a shape; its name."""
    writer = Writer(pick, classes, depth, values=[Value("x", shape)])
    for _ in range(pick([1, 2, 3, 4])):
        writer.step()
    same = [v for v in writer.values if v.shape == shape and v.dtype == "float32"]
    last = same[-1].name
    result = pick([last, f"x + {last}", f"{last} * 0.5"])
    writer.forward.append(f"return {result}")
    name = f"Block{len(classes)}"
    classes.append(writer.text(name, ["x"]))
    return name


INPUTS = [
    ("torch.randn(2, 3, 4)", (2, 3, 4), "float32"),
    ("torch.randn(4, 6)", (4, 6), "float32"),
    ("torch.rand(2, 4, 6)", (2, 4, 6), "float32"),
    ("torch.randint(0, 16, (2, 3))", (2, 3), "int64"),
    ("torch.randn(1, 2, 4, 4)", (1, 2, 4, 4), "float32"),
    ("torch.randn(3, 2, 4).transpose(0, 1)", (2, 3, 4), "float32"),
    ("torch.randn(2, 3, 4, dtype=torch.float64)", (2, 3, 4), "float64"),
    ("torch.rand(2, 3) < 0.5", (2, 3), "bool"),
]


def problem(pick: Pick) -> str:  # type: ignore[type-arg]
    """A whole problem file."""
    given = [pick(INPUTS[:5])] + [pick(INPUTS) for _ in range(pick([0, 0, 1, 2]))]
    names = [f"x{k}" for k in range(len(given))]
    classes: list[str] = []
    writer = Writer(pick, classes, 0)
    writer.values = [
        Value(n, shape, dtype) for n, (_, shape, dtype) in zip(names, given, strict=True)
    ]
    for _ in range(pick([2, 4, 6, 9])):
        writer.step()
    writer.ends_with()
    texts = [
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F",
        *classes,
        writer.text("Model", names),
        f"def get_inputs():\n    return [{', '.join(text for text, _, _ in given)}]",
        "def get_init_inputs():\n    return []",
    ]
    return "\n\n\n".join(texts) + "\n"
