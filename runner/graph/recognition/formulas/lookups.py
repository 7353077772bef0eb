"""Lists the spellings of expert routing, look-ups of rows and cumulative sums."""

EXPERTS = (
    ("topk_router", (  # Shazeer et al., 2017: weights of the best experts, zero for the others
        "scatter(zeros_like(x), topk_indices(x), softmax(topk(x)))",
        "scatter(y, topk_indices(x), softmax(topk(x)))",
        "softmax(scatter(zeros_like(x), topk_indices(x), topk(x)))",
        "scatter(zeros_like(y), topk_indices(softmax(x)),"
        " topk(softmax(x)) / (sum(topk(softmax(x)), d) [+ eps]))",
        "scatter(y, topk_indices(softmax(x)),"
        " topk(softmax(x)) / (sum(topk(softmax(x)), d) [+ eps]))",
        "scatter(zeros_like(y), topk_indices(softmax(x)), topk(softmax(x)))",
        "scatter(y, topk_indices(softmax(x)), topk(softmax(x)))",
        "topk(softmax(x)) / (sum(topk(softmax(x)), d) [+ eps]) [* c]",
        "topk(softmax(x)) / clamp(sum(topk(softmax(x)), d), eps)",
        "topk(sigmoid(x)) / (sum(topk(sigmoid(x)), d) [+ eps]) [* c]",
        "softmax(topk(x))",
        "sigmoid(topk(x))",
        "topk(softmax(x))",
        "max(softmax(x))",
    )),
    ("expert_combine", (  # the experts' results, weighted, back in the order of the tokens
        "index_add(0, indices, x * gates)",
        "index_add(y, indices, x * gates)",
        "index_put(y, indices, rows(y, indices) + x * gates)",
        "index_put(y, indices, x * gates)",
        "sum(view(rows(x * gates)), d)",
        "sum(x * gates, d)",
    )),
)  # fmt: skip

SELECTIONS = (
    ("where", ("index_put(x, mask, rows(y, mask))",)),  # x[mask] = y[mask]
)

EMBEDDINGS = (
    ("embedding_bag", ("sum(embedding(weight, x), d)", "mean(embedding(weight, x), d)",
                       "max(embedding(weight, x), d)")),
)  # fmt: skip

SCANS = (
    ("segment_sum", (  # Dao and Gu, 2024: sums of x over every segment i..j, minus infinity above
        "where(mask, c, cumsum(where(mask2, 0, x)))",
        "where(mask, c, view(cumsum(x)) - view(cumsum(x)))",
        "where(mask, view(cumsum(x)) - view(cumsum(x)), c)",
    )),
    ("reverse_cumsum", ("flip(cumsum(flip(x, d), d), d)",)),
    ("exclusive_cumsum", ("cumsum(x, d) - x",)),
)  # fmt: skip
