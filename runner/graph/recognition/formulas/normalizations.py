"""Lists the spellings of normalisations.

Layer, group, instance and batch normalisation are one formula; their dimensions tell them apart.
"""

NORMALIZATIONS = (
    ("batch_norm", (  # Ioffe and Szegedy, 2015, with the statistics of training
        "(x - running_mean) / sqrt(running_var [+ eps]) [* weight] [+ bias]",
        "x * (weight / sqrt(running_var [+ eps]))"
        " + (bias - running_mean * (weight / sqrt(running_var [+ eps])))",
    )),
    ("group_norm", (  # Wu and He, 2018
        "view((view(x) - mean(view(x), d)) / sqrt(var(view(x), d) [+ eps])) * weight + bias",
        "view((view(x) - mean(view(x), d)) / (std(view(x), d) [+ eps])) * weight + bias",
        "view((view(x) - mean(view(x), d))"
        " / sqrt(mean((view(x) - mean(view(x), d))**2, d) [+ eps])) * weight + bias",
        "view((view(x) - mean(view(x), d))"
        " / sqrt(mean(view(x)**2, d) - mean(view(x), d)**2 [+ eps])) * weight + bias",
        "view((view(x) - mean(view(x), d)) / sqrt(var(view(x), d) [+ eps])) * weight",
        "view((view(x) - mean(view(x), d)) / (std(view(x), d) [+ eps])) * weight",
        "view((view(x) - mean(view(x), d))"
        " / sqrt(mean((view(x) - mean(view(x), d))**2, d) [+ eps])) * weight",
        "view((view(x) - mean(view(x), d))"
        " / sqrt(mean(view(x)**2, d) - mean(view(x), d)**2 [+ eps])) * weight",
        "(view(x) - mean(view(x), d)) / sqrt(var(view(x), d) [+ eps])",
        "(view(x) - mean(view(x), d)) / (std(view(x), d) [+ eps])",
        "(view(x) - mean(view(x), d)) / sqrt(mean((view(x) - mean(view(x), d))**2, d) [+ eps])",
        "(view(x) - mean(view(x), d)) / sqrt(mean(view(x)**2, d) - mean(view(x), d)**2 [+ eps])",
    )),
    ("layer_norm", (  # Ba et al., 2016
        "(x - mean(x, d)) / sqrt(var(x, d) [+ eps]) [* weight] [+ bias]",
        "(x - mean(x, d)) / (std(x, d) [+ eps]) [* weight] [+ bias]",
        "(x - mean(x, d)) / (sqrt(var(x, d)) + eps) [* weight] [+ bias]",
        "(x - mean(x, d)) / sqrt(mean((x - mean(x, d))**2, d) [+ eps]) [* weight] [+ bias]",
        "(x - mean(x, d)) / (sqrt(mean((x - mean(x, d))**2, d)) + eps) [* weight] [+ bias]",
        "(x - mean(x, d)) / sqrt(mean(x**2, d) - mean(x, d)**2 [+ eps]) [* weight] [+ bias]",
        "(x - mean(x, d)) / sqrt(clamp(mean(x**2, d) - mean(x, d)**2, lo, hi) [+ eps])"
        " [* weight] [+ bias]",
    )),
    ("rms_norm", (  # Zhang and Sennrich, 2019
        "x / sqrt(mean(x**2, d) [+ eps]) * (1 + weight)",
        "x / sqrt(mean(x**2, d) [+ eps]) [* weight] [+ bias]",
        "x / (sqrt(mean(x**2, d)) + eps) [* weight]",
        "x / clamp(sqrt(mean(x**2, d)), eps) [* weight]",
        "x / sqrt(clamp(mean(x**2, d), eps)) [* weight]",
        "x / (norm(x, 2, d) * c [+ eps]) [* weight]",
        "x / clamp(norm(x, 2, d) [* c], eps) * c2 * weight",
        "x / clamp(norm(x, 2, d) [* c], eps) * c2 * (1 + weight)",
        "x / clamp(norm(x, 2, d) * c, eps) [* weight]",
    )),
    ("cosine_similarity", (
        "sum(x * y, d) / (norm(x, 2, d) * norm(y, 2, d) [+ eps])",
        "sum(x * y, d) / clamp(norm(x, 2, d) * norm(y, 2, d), eps)",
        "sum(x * y, d) / (clamp(norm(x, 2, d), eps) * clamp(norm(y, 2, d), eps))",
        "sum(x * y, d) / ((norm(x, 2, d) + eps) * (norm(y, 2, d) + eps))",
        "sum(x * y, d) / sqrt(sum(x**2, d) * sum(y**2, d) [+ eps])",
        "sum(x * y, d) / (sqrt(sum(x**2, d)) * sqrt(sum(y**2, d)) [+ eps])",
        "sum(x / norm(x, 2, d) * (y / norm(y, 2, d)), d)",
        "sum(x / clamp(norm(x, 2, d), eps) * (y / clamp(norm(y, 2, d), eps)), d)",
    )),
    ("masked_mean", (
        "sum(x * y, d) / sum(y, d)",
        "sum(x * y, d) / clamp(sum(y, d), eps)",
        "sum(x * y, d) / (sum(y, d) + eps)",
    )),
    ("l1_norm", (
        "x / (norm(x, 1, d) [+ eps])",
        "x / clamp(norm(x, 1, d), eps)",
        "x / (sum(abs(x), d) [+ eps])",
        "x / clamp(sum(abs(x), d), eps)",
        "x / (mean(abs(x), d) [+ eps])",
    )),
    ("l2_norm", (
        "x / (norm(x, 2, d) [+ eps])",
        "x / clamp(norm(x, 2, d), eps)",
        "x / maximum(norm(x, 2, d), eps)",
        "x / sqrt(sum(x**2, d) [+ eps])",
        "x / (sqrt(sum(x**2, d)) + eps)",
        "x / clamp(sqrt(sum(x**2, d)), eps)",
        "x / sqrt(clamp(sum(x**2, d), eps))",
        "x / sqrt(sum(abs(x)**2, d) [+ eps])",
    )),
)  # fmt: skip
