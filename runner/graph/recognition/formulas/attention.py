"""Lists the spellings of softmax, position embeddings and attention masks."""

POSITIONS = (
    ("rope", (  # Su et al., 2021: pairs rotated by their position's angle
        "cat(x * cos + cat(-view(x), view(x)) * sin, rest)",
        "cat(x * cos + view(stack(-view(x), view(x))) * sin, rest)",
        "cat(rest, x * cos + cat(-view(x), view(x)) * sin)",
        "cat(rest, x * cos + view(stack(-view(x), view(x))) * sin)",
        "x * cos + cat(-view(x), view(x)) * sin",
        "x * cos + view(stack(-view(x), view(x))) * sin",
        "cat(a * cos - b * sin, b * cos2 + a * sin2)",
        "cat(a * cos + -b * sin, b * cos2 + a * sin2)",
        "stack(a * cos - b * sin, b * cos2 + a * sin2)",
        "stack(a * cos + -b * sin, b * cos2 + a * sin2)",
        "view_as_complex(x) * angles",
    )),
    ("attention_mask", ("(1 - x) * c",)),  # x is 1 where a token may be attended to
    ("sinusoidal_embedding", (  # Vaswani et al., 2017: of timesteps given as an input
        "cat(sin(x * y), cos(x * y))",
        "cat(cos(x * y), sin(x * y))",
        "cat(sin(c * x * y), cos(c * x * y))",
        "cat(cos(c * x * y), sin(c * x * y))",
    )),
)  # fmt: skip

SOFTMAXES = (
    ("log_softmax", ("log(softmax(x))",)),
    ("softmax", (
        "softmax(x - max(x, d))",
        "exp(x - max(x, d)) / (sum(exp(x - max(x, d)), d) [+ eps])",
        "exp(x) / (sum(exp(x), d) [+ eps])",
        "exp(x - logsumexp(x, d))",
        "exp(log_softmax(x))",
    )),
    ("log_softmax", (
        "x - max(x, d) - log(sum(exp(x - max(x, d)), d))",
        "x - (max(x, d) + log(sum(exp(x - max(x, d)), d)))",
        "x - log(sum(exp(x), d))",
        "x - logsumexp(x, d)",
    )),
    ("logsumexp", ("max(x, d) + log(sum(exp(x - max(x, d)), d))", "log(sum(exp(x), d))")),
)  # fmt: skip
