"""Lists the spellings of activations and gated activations."""

GATED = (  # a and b: two halves of one tensor, or two projections of one
    ("swiglu", (  # Shazeer, 2020; with limits: gpt-oss
        "clamp(a, lo, hi) * sigmoid(c * clamp(a, lo, hi)) * (clamp(b, lo2, hi2) + 1)",
        "silu(clamp(a, lo, hi)) * (clamp(b, lo2, hi2) + 1)",
        "silu(clamp(a, lo, hi)) * clamp(b, lo2, hi2)",
        "a * sigmoid(c * a) * b",
        "silu(a) * b",
    )),
    ("geglu", (
        "gelu(clamp(a, lo, hi)) * clamp(b, lo2, hi2)",
        "gelu(a) * b",
    )),
    ("reglu", (
        "relu(clamp(a, lo, hi)) * clamp(b, lo2, hi2)",
        "relu(a) * b",
    )),
    ("gated_tanh", ("tanh(a) * sigmoid(b)",)),  # van den Oord et al., 2016
    ("glu", ("sigmoid(a) * b",)),  # Dauphin et al., 2016
)  # fmt: skip

ACTIVATIONS = (
    ("gelu", (  # Hendrycks and Gimpel, 2016
        "0.5 * x * (1 + erf(x / 1.414214))",
        "x * (0.5 + 0.5 * erf(x / 1.414214))",
        "0.5 * x * erfc(-x / 1.414214)",
        "0.5 * x * erfc(-0.707107 * x)",
        "0.5 * x * (1 + tanh(0.797885 * (x + 0.044715 * x**3)))",
        "0.5 * x * (1 + tanh(0.797885 * x * (1 + 0.044715 * x**2)))",
        "0.5 * x * (1 + tanh(0.797885 * x + 0.0356774 * x**3))",
        "x * (0.5 + 0.5 * tanh(0.797885 * (x + 0.044715 * x**3)))",
        "x * sigmoid(1.595769 * (x + 0.044715 * x**3))",
        "x * sigmoid(1.595769 * x * (1 + 0.044715 * x**2))",
    )),
    ("quick_gelu", ("x * sigmoid(1.702 * x)",)),
    ("silu", ("x * sigmoid(x)", "x / (1 + exp(-x))")),  # Elfwing et al., 2017
    ("swish", (  # Ramachandran et al., 2017
        "x * sigmoid(c * x)",
        "x * sigmoid(weight * x)",
        "x / (1 + exp(-c * x))",
        "x / (1 + exp(-weight * x))",
    )),
    ("mish", ("x * tanh(softplus(x))",)),  # Misra, 2019
    ("hardswish", ("x * hardsigmoid(x)",)),  # Howard et al., 2019
    ("hardsigmoid", (
        "clamp(x + 3, 0, 6) / 6",
        "clamp(x / 6 + 0.5, 0, 1)",
        "clamp((x + 3) / 6, 0, 1)",
        "clamp(0.2 * x + 0.5, 0, 1)",
    )),
    ("squared_relu", ("relu(x)**2",)),  # So et al., 2021
    ("selu", (  # Klambauer et al., 2017
        "1.0507 * where(x > 0, x, 1.67326 * (exp(x) - 1))",
        "1.0507 * where(x > 0, x, 1.67326 * exp(x) - 1.67326)",
        "1.0507 * where(x > 0, x, 1.67326 * expm1(x))",
        "1.0507 * (maximum(x, 0) + minimum(1.67326 * (exp(x) - 1), 0))",
    )),
    ("elu", (  # Clevert et al., 2015
        "where(x > 0, x, c * (exp(x) - 1))",
        "where(x > 0, x, exp(x) - 1)",
        "where(x > 0, x, c * expm1(x))",
        "where(x > 0, x, expm1(x))",
        "relu(x) + clamp(c * (exp(x) - 1), lo, 0)",
        "relu(x) + clamp(exp(x) - 1, lo, 0)",
    )),
    ("prelu", (  # He et al., 2015
        "where(x > 0, x, weight * x)",
        "relu(x) - weight * relu(-x)",
        "relu(x) + weight * clamp(x, lo, 0)",
        "clamp(x, 0, hi) + weight * clamp(x, lo, 0)",
        "relu(x) + weight * (x - abs(x)) * 0.5",
    )),
    ("leaky_relu", (
        "where(x > 0, x, c * x)",
        "maximum(x, c * x)",
        "relu(x) - c * relu(-x)",
        "relu(x) + c * clamp(x, lo, 0)",
    )),
    ("relu", ("where(x > 0, x, 0)", "x * (x > 0)", "maximum(x, 0)", "0.5 * (x + abs(x))")),
    ("softsign", ("x / (1 + abs(x))",)),
    ("log_sigmoid", ("log(sigmoid(x))", "-softplus(-x)", "-log(1 + exp(-x))")),
    ("softplus", (
        "relu(x) + log(1 + exp(-abs(x)))",
        "relu(x) + log1p(exp(-abs(x)))",
        "log(1 + exp(c * x)) / c",
        "log1p(exp(c * x)) / c",
        "log(1 + exp(x))",
        "log1p(exp(x))",
        "logaddexp(x, 0)",
    )),
    ("sigmoid", ("1 / (1 + exp(-x))", "exp(x) / (1 + exp(x))", "0.5 * (1 + tanh(0.5 * x))")),
    ("tanh", (
        "(exp(x) - exp(-x)) / (exp(x) + exp(-x))",
        "(exp(2 * x) - 1) / (exp(2 * x) + 1)",
        "(1 - exp(-2 * x)) / (1 + exp(-2 * x))",
        "2 * sigmoid(2 * x) - 1",
    )),
    ("tanhshrink", ("x - tanh(x)",)),
    ("softshrink", ("sign(x) * relu(abs(x) - c)",)),
    ("hardshrink", ("where(abs(x) > c, x, 0)",)),
    ("softcap", ("c * tanh(x / c)",)),  # Gemma 2, 2024
)  # fmt: skip
