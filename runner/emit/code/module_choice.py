"""Finds the `torch.nn` module that runs an operation whose weights the model owns.

A module is chosen only if its own `forward` runs exactly the operation: same overload, same
arguments. Otherwise (computed weights, a layout that the module would not keep, a mode that the
call does not follow) the operation stays a function call.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from runner.emit.code.literals import Expression, literal
from runner.graph.ir import Arg, Operation, Ref, Symbol, TensorSpec, references


@dataclass(frozen=True, slots=True)
class ModuleChoice:
    """A `torch.nn` module and the call of it that runs an operation."""

    cls: str
    """Class in `torch.nn`: `Conv2d`."""
    arguments: tuple[tuple[str, str], ...]
    """Arguments of the constructor in its own order, as Python, without defaults."""
    weights: tuple[tuple[str, str], ...]
    """Attribute of the module -> value in the graph: `("weight", "p_conv1_weight")`."""
    inputs: tuple[Arg, ...]
    """Arguments of the call: `(x,)`, `(x, (h0, c0))`."""
    extra: tuple[str, ...] = ()
    """Further buffers of the module, which the operation does not read."""
    unpack: str = "{}"
    """Targets that unpack the operation's outputs from the call's result: `{}, ({}, {})`."""


Settings = Iterable[tuple[str, Arg, Arg]]
"""Constructor arguments: name, value, default; `...` if there is no default."""
Weights = Iterable[tuple[str, Arg]]
"""Weights of a module: attribute, argument of the operation."""


@dataclass(frozen=True, slots=True)
class _Site:
    """An operation with its context: the specs of its values, and which of them the model owns."""

    op: Operation
    specs: Mapping[str, TensorSpec]
    is_state: Callable[[str], bool]
    training: bool
    """Whether the module will be called in training mode."""

    def arg(self, name: str, default: Arg = None) -> Arg:
        return self.op.arg(name, default)

    def shape(self, arg: Arg) -> tuple[int, ...]:
        """Return the shape of a tensor argument; () if there is none."""
        return self.specs[arg.name].shape if isinstance(arg, Ref) else ()

    def module(
        self,
        cls: str,
        settings: Iterable[tuple[str, Arg, object]],
        weights: Weights,
        inputs: tuple[Arg, ...],
        extra: tuple[str, ...] = (),
        unpack: str = "{}",
    ) -> ModuleChoice | None:
        """Return the module call; None if a weight is computed, or the module would change it.

        A module makes contiguous floating-point weights of one dtype.
        """
        passed_weights = [(attribute, value) for attribute, value in weights if value is not None]
        owned = [
            (a, v.name) for a, v in passed_weights if isinstance(v, Ref) and self.is_state(v.name)
        ]
        specs = [self.specs[name] for _, name in owned]
        dtypes = {spec.dtype for spec in specs}
        if len(owned) < len(passed_weights) or len(dtypes) > 1:
            return None
        if not all(spec.contiguous and spec.floating for spec in specs):
            return None
        default_dtype = Symbol("torch.float32")
        settings_with_dtype = [
            *settings,
            *(("dtype", Symbol(f"torch.{dtype}"), default_dtype) for dtype in dtypes),
        ]
        arguments = tuple(
            (n, literal(v, Expression).text)
            for n, v, default in settings_with_dtype
            if v != default
        )
        return ModuleChoice(cls, arguments, tuple(owned), inputs, extra, unpack)


def module_call(
    op: Operation,
    specs: Mapping[str, TensorSpec],
    is_state: Callable[[str], bool],
    *,
    training: bool = False,
) -> ModuleChoice | None:
    """Return the module call that runs exactly this operation, None if there is none.

    `training` is the mode in which the module will be called.
    """
    build = _MODULES.get(op.name)
    return build(_Site(op, specs, is_state, training)) if build else None


def zero_states(op: Operation, maker: Callable[[str], Operation | None]) -> list[str]:
    """Return the zero initial states that a recurrent module makes itself if it is passed none.

    Empty if they were made by anything but the module. `maker` gives the operation that makes a
    value, None if there is none.
    """
    names = list(references(op.arg("hx"))) if op.name in {*_RECURRENT, *_CELLS} else []
    makers = [maker(name) for name in names]
    are_own = all(m is not None and m.name == "zeros" and m.scopes == op.scopes for m in makers)
    return names if are_own and op.scopes and op.scopes[-1].builtin else []


def _collapse_equal(arg: Arg) -> Arg:
    """Return one number for a tuple of equal ones, as in `kernel_size=3`."""
    if isinstance(arg, tuple) and arg and all(item == arg[0] for item in arg):
        return arg[0]
    return arg


# --- contractions ---------------------------------------------------------------------------------


def _linear(site: _Site) -> ModuleChoice | None:
    weight, bias = site.arg("weight"), site.arg("bias")
    if len(shape := site.shape(weight)) != 2:
        return None
    return site.module(
        "Linear",
        [
            ("in_features", shape[1], ...),
            ("out_features", shape[0], ...),
            ("bias", bias is not None, True),
        ],
        [("weight", weight), ("bias", bias)],
        (site.arg("input"),),
    )


def _bilinear(site: _Site) -> ModuleChoice | None:
    weight, bias = site.arg("weight"), site.arg("bias")
    out, first, second = site.shape(weight)
    return site.module(
        "Bilinear",
        [
            ("in1_features", first, ...),
            ("in2_features", second, ...),
            ("out_features", out, ...),
            ("bias", bias is not None, True),
        ],
        [("weight", weight), ("bias", bias)],
        (site.arg("input1"), site.arg("input2")),
    )


def _conv(site: _Site) -> ModuleChoice | None:
    weight, bias, groups = site.arg("weight"), site.arg("bias"), site.arg("groups", 1)
    shape = site.shape(weight)
    assert isinstance(groups, int)
    transposed = site.op.name.startswith("conv_transpose")
    grouped_channels = shape[1] * groups
    channels = (shape[0], grouped_channels) if transposed else (grouped_channels, shape[0])
    sizes = {
        name: (name, _collapse_equal(site.arg(name, default)), default)
        for name, default in (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0))
    }
    has_bias = ("bias", bias is not None, True)
    group_setting = ("groups", groups, 1)
    final_settings = (
        (sizes["output_padding"], group_setting, has_bias, sizes["dilation"])
        if transposed
        else (sizes["dilation"], group_setting, has_bias)
    )
    if site.op.target.endswith(".padding") and site.arg("padding") is None:
        return None
    return site.module(
        f"Conv{'Transpose' if transposed else ''}{len(shape) - 2}d",
        [
            ("in_channels", channels[0], ...),
            ("out_channels", channels[1], ...),
            ("kernel_size", _collapse_equal(shape[2:]), ...),
            sizes["stride"],
            sizes["padding"],
            *final_settings,
        ],
        [("weight", weight), ("bias", bias)],
        (site.arg("input"),),
    )


# --- normalisation --------------------------------------------------------------------------------


def _running_norm(site: _Site) -> ModuleChoice | None:
    """Return the batch or instance normalisation; only the former has weights by default."""
    source, weight, bias = site.arg("input"), site.arg("weight"), site.arg("bias")
    mean, var = site.arg("running_mean"), site.arg("running_var")
    is_batch = site.op.name == "batch_norm"
    uses_input_stats = site.arg("training" if is_batch else "use_input_stats")
    shape = site.shape(source)
    tracked = mean is not None
    ranks = (2, 3, 4, 5) if is_batch else (3, 4, 5)
    if len(shape) not in ranks or (weight is None) != (bias is None):
        return None
    if tracked != (var is not None) or uses_input_stats is not (site.training if tracked else True):
        return None
    return site.module(
        f"{'Batch' if is_batch else 'Instance'}Norm{max(len(shape) - 2, 1)}d",
        [
            ("num_features", shape[1], ...),
            ("eps", site.arg("eps"), 1e-5),
            ("momentum", site.arg("momentum"), 0.1),
            ("affine", weight is not None, is_batch),
            ("track_running_stats", tracked, is_batch),
        ],
        [("weight", weight), ("bias", bias), ("running_mean", mean), ("running_var", var)],
        (source,),
        extra=("num_batches_tracked",) if tracked else (),
    )


def _layer_norm(site: _Site) -> ModuleChoice | None:
    weight, bias, shape = site.arg("weight"), site.arg("bias"), site.arg("normalized_shape")
    if weight is None and bias is not None:
        return None
    return site.module(
        "LayerNorm",
        [
            ("normalized_shape", _unwrap_single(shape), ...),
            ("eps", site.arg("eps", 1e-5), 1e-5),
            ("elementwise_affine", weight is not None, True),
            ("bias", bias is not None, weight is not None),
        ],
        [("weight", weight), ("bias", bias)],
        (site.arg("input"),),
    )


def _unwrap_single(arg: Arg) -> Arg:
    return arg[0] if isinstance(arg, tuple) and len(arg) == 1 else arg


def _rms_norm(site: _Site) -> ModuleChoice | None:
    weight = site.arg("weight")
    return site.module(
        "RMSNorm",
        [
            ("normalized_shape", _unwrap_single(site.arg("normalized_shape")), ...),
            ("eps", site.arg("eps"), None),
            ("elementwise_affine", weight is not None, True),
        ],
        [("weight", weight)],
        (site.arg("input"),),
    )


def _group_norm(site: _Site) -> ModuleChoice | None:
    weight, bias, source = site.arg("weight"), site.arg("bias"), site.arg("input")
    if (weight is None) != (bias is None):
        return None
    return site.module(
        "GroupNorm",
        [
            ("num_groups", site.arg("num_groups"), ...),
            ("num_channels", site.shape(source)[1], ...),
            ("eps", site.arg("eps", 1e-5), 1e-5),
            ("affine", weight is not None, True),
        ],
        [("weight", weight), ("bias", bias)],
        (source,),
    )


# --- tables and slopes ----------------------------------------------------------------------------


def _embedding(site: _Site) -> ModuleChoice | None:
    weight, padding = site.arg("weight"), site.arg("padding_idx", -1)
    if len(shape := site.shape(weight)) != 2:
        return None
    return site.module(
        "Embedding",
        [
            ("num_embeddings", shape[0], ...),
            ("embedding_dim", shape[1], ...),
            ("padding_idx", padding, -1),
            ("scale_grad_by_freq", site.arg("scale_grad_by_freq", False), False),
            ("sparse", site.arg("sparse", False), False),
        ],
        [("weight", weight)],
        (site.arg("indices"),),
    )


def _prelu(site: _Site) -> ModuleChoice | None:
    weight = site.arg("weight")
    if len(shape := site.shape(weight)) != 1:
        return None
    return site.module(
        "PReLU", [("num_parameters", shape[0], 1)], [("weight", weight)], (site.arg("self"),)
    )


# --- recurrent ------------------------------------------------------------------------------------

# Operator -> (module, gates, further constructor arguments, targets that unpack the outputs).
_RECURRENT: dict[str, tuple[str, int, Settings, str]] = {
    "lstm": ("LSTM", 4, (), "{}, ({}, {})"),
    "gru": ("GRU", 3, (), "{}, {}"),
    "rnn_tanh": ("RNN", 1, (), "{}, {}"),
    "rnn_relu": ("RNN", 1, (("nonlinearity", "relu", "tanh"),), "{}, {}"),
}
_CELLS: dict[str, tuple[str, int, Settings, str]] = {
    "lstm_cell": ("LSTMCell", 4, (), "{}, {}"),
    "gru_cell": ("GRUCell", 3, (), "{}"),
    "rnn_tanh_cell": ("RNNCell", 1, (), "{}"),
    "rnn_relu_cell": ("RNNCell", 1, (("nonlinearity", "relu", "tanh"),), "{}"),
}


def _recurrent(site: _Site) -> ModuleChoice | None:
    cls, gates, settings, unpack = _RECURRENT[site.op.name]
    source, state, params = site.arg("input"), site.arg("hx"), site.arg("params")
    if not site.op.target.endswith(".input") or not isinstance(params, tuple) or not params:
        return None
    if len(site.shape(source)) != 3 or site.arg("train") is not site.training:
        return None
    layers, bidirectional = site.arg("num_layers"), site.arg("bidirectional")
    first, second = site.shape(params[0]), site.shape(params[1])
    if not isinstance(layers, int) or len(first) != 2 or len(second) != 2:
        return None
    hidden = first[0] // gates
    projected = second[1] if second[1] != hidden else 0
    parts = ["weight_ih", "weight_hh"]
    parts += ["bias_ih", "bias_hh"] if site.arg("has_biases") else []
    parts += ["weight_hr"] if projected else []
    names = [
        f"{part}_l{layer}{direction}"
        for layer in range(layers)
        for direction in (("", "_reverse") if bidirectional else ("",))
        for part in parts
    ]
    if len(names) != len(params):
        return None
    return site.module(
        cls,
        [
            ("input_size", first[1], ...),
            ("hidden_size", hidden, ...),
            ("num_layers", layers, 1),
            *settings,
            ("bias", site.arg("has_biases"), True),
            ("batch_first", site.arg("batch_first"), False),
            ("dropout", site.arg("dropout"), 0.0),
            ("bidirectional", bidirectional, False),
            ("proj_size", projected, 0),
        ],
        zip(names, params, strict=True),
        (source,) if state is None else (source, state),
        unpack=unpack,
    )


def _cell(site: _Site) -> ModuleChoice | None:
    cls, gates, settings, unpack = _CELLS[site.op.name]
    source, state, weight = site.arg("input"), site.arg("hx"), site.arg("w_ih")
    bias_ih, bias_hh = site.arg("b_ih"), site.arg("b_hh")
    if len(site.shape(source)) != 2 or (bias_ih is None) != (bias_hh is None):
        return None
    shape = site.shape(weight)
    return site.module(
        cls,
        [
            ("input_size", shape[1], ...),
            ("hidden_size", shape[0] // gates, ...),
            ("bias", bias_ih is not None, True),
            *settings,
        ],
        [
            ("weight_ih", weight),
            ("weight_hh", site.arg("w_hh")),
            ("bias_ih", bias_ih),
            ("bias_hh", bias_hh),
        ],
        (source,) if state is None else (source, state),
        unpack=unpack,
    )


_MODULES: dict[str, Callable[[_Site], ModuleChoice | None]] = {
    "linear": _linear,
    "bilinear": _bilinear,
    **{f"conv{n}d": _conv for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _conv for n in (1, 2, 3)},
    "batch_norm": _running_norm,
    "instance_norm": _running_norm,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "embedding": _embedding,
    "prelu": _prelu,
    **dict.fromkeys(_RECURRENT, _recurrent),
    **dict.fromkeys(_CELLS, _cell),
}
