"""Lists the spellings of losses: x are predictions, y are targets, the result is one number."""

LOSSES = (
    ("cross_entropy", (
        "-mean(gather(log_softmax(x), y))",
        "mean(-gather(log_softmax(x), y))",
        "nll_loss(log_softmax(x), y)",
        "mean(-sum(y * log_softmax(x), d))",
        "-mean(sum(y * log_softmax(x), d))",
        "mean(logsumexp(x, d) - gather(x, y))",
        "-mean(log(gather(softmax(x), y) [+ eps]))",
        "mean(-log(gather(softmax(x), y) [+ eps]))",
    )),
    ("kl_div", (
        "mean(sum(y * (log(y [+ eps]) - log(x [+ eps])), d))",
        "sum(y * (log(y [+ eps]) - log(x [+ eps])))",
        "mean(sum(y * log(y / x), d))",
        "sum(y * log(y / x))",
        "mean(sum(y * (log(y) - x), d))",
        "sum(y * (log(y) - x))",
    )),
    ("binary_cross_entropy", (
        "-mean(y * log(x [+ eps]) + (1 - y) * log(1 - x [+ eps]))",
        "mean(-(y * log(x [+ eps]) + (1 - y) * log(1 - x [+ eps])))",
        "mean(-y * log(x [+ eps]) - (1 - y) * log(1 - x [+ eps]))",
        "-mean(y * log(clamp(x, lo, hi)) + (1 - y) * log(1 - clamp(x, lo, hi)))",
    )),
    ("binary_cross_entropy_with_logits", (
        "mean(relu(x) - x * y + log(1 + exp(-abs(x))))",
        "mean(relu(x) - x * y + log1p(exp(-abs(x))))",
        "mean(softplus(x) - x * y)",
        "-mean(y * log_sigmoid(x) + (1 - y) * log_sigmoid(-x))",
    )),
    ("huber_loss", (
        "mean(where(abs(x - y) > c, c * (abs(x - y) - c2), 0.5 * (x - y)**2))",
        "mean(where(abs(x - y) > c, c * (abs(x - y) - c2), 0.5 * abs(x - y)**2))",
        "mean(where(abs(x - y) > 1, abs(x - y) - 0.5, 0.5 * (x - y)**2))",
        "mean(where(abs(x - y) > 1, abs(x - y) - 0.5, 0.5 * abs(x - y)**2))",
    )),
    ("triplet_margin_loss", (
        "mean(relu(norm(x - y, c, d) - norm(x - z, c, d) + eps))",
        "mean(relu(pairwise_distance(x, y) - pairwise_distance(x, z) + eps))",
        "mean(relu(sum((x - y)**2, d) - sum((x - z)**2, d) + eps))",
    )),
    ("cosine_similarity_loss", ("mean(1 - cosine_similarity(x, y))",)),
    ("dice_loss", (
        "1 - (2 * sum(x * y) [+ c]) / (sum(x) + sum(y) [+ c])",
    )),
    ("hinge_loss", ("mean(relu(1 - x * y))",)),
    ("mse_loss", ("mean((x - y)**2)",)),
    ("l1_loss", ("mean(abs(x - y))",)),
    ("nll_loss", ("-mean(gather(x, y))", "mean(-gather(x, y))")),
)  # fmt: skip
