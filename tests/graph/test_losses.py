"""Losses are recognised however they are spelled."""

import pytest
from programs import Program, names

PAIRS = "torch.rand(4, 8), torch.rand(4, 8)"
SPELLINGS = [
    ("mse_loss", "return ((x - y) ** 2).mean()"),
    ("mse_loss", "d = y - x\nreturn torch.mean(d * d)"),
    ("mse_loss", "return (x - y).square().sum() / x.numel()"),
    ("l1_loss", "return (x - y).abs().mean()"),
    ("l1_loss", "return torch.mean(torch.abs(y - x))"),
    (
        "huber_loss",
        "d = (x - y).abs()\nreturn torch.where(d < 1, 0.5 * d * d, d - 0.5).mean()",
    ),
    (
        "huber_loss",
        "e = x - y\na = e.abs()\nreturn torch.where(a <= 0.5, 0.5 * e**2, 0.5 * (a - 0.25)).mean()",
    ),
    ("hinge_loss", "return torch.mean(torch.clamp(1 - x * y, min=0))"),
    ("hinge_loss", "return F.relu(1.0 - y * x).mean()"),
    (
        "binary_cross_entropy",
        "return -(y * torch.log(x) + (1 - y) * torch.log(1 - x)).mean()",
    ),
    (
        "binary_cross_entropy",
        "return (-y * torch.log(x + 1e-7) - (1 - y) * torch.log(1 - x + 1e-7)).mean()",
    ),
    (
        "binary_cross_entropy_with_logits",
        "return (x.clamp(min=0) - x * y + torch.log(1 + torch.exp(-x.abs()))).mean()",
    ),
    ("binary_cross_entropy_with_logits", "return (F.softplus(x) - x * y).mean()"),
    ("kl_div", "return (y * (y.log() - x.log())).sum(-1).mean()"),
    ("kl_div", "return torch.sum(y * torch.log(y / x))"),
    ("cosine_similarity_loss", "return (1 - F.cosine_similarity(x, y, dim=1)).mean()"),
    (
        "cosine_similarity_loss",
        "return torch.mean(1 - (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1)))",
    ),
    ("dice_loss", "return 1 - (2 * (x * y).sum() + 1) / (x.sum() + y.sum() + 1)"),
    ("dice_loss", "return 1 - 2 * torch.sum(x * y) / (torch.sum(x) + torch.sum(y))"),
    (
        "cross_entropy",
        "return -(y * F.log_softmax(x, dim=-1)).sum(dim=-1).mean()",
    ),
    (
        "cross_entropy",
        "return torch.mean(-torch.sum(y * (x - torch.logsumexp(x, 1, keepdim=True)), 1))",
    ),
]


@pytest.mark.parametrize(("operation", "forward"), SPELLINGS)
def test_a_spelling_of_it_is_one_kernel(program: Program, operation: str, forward: str) -> None:
    assert names(program(forward, arguments="x, y", inputs=PAIRS)) == [operation]


CLASSES = [
    ("cross_entropy", "return -F.log_softmax(x, -1).gather(1, y[:, None]).squeeze(1).mean()"),
    ("cross_entropy", "return -torch.log_softmax(x, 1)[torch.arange(4), y].mean()"),
    ("cross_entropy", "return F.nll_loss(F.log_softmax(x, dim=1), y)"),
    (
        "cross_entropy",
        "return (torch.logsumexp(x, 1) - x.gather(1, y.unsqueeze(1)).squeeze(1)).mean()",
    ),
    ("cross_entropy", "return -torch.log(x.softmax(-1).gather(1, y.view(-1, 1)) + 1e-9).mean()"),
    ("cross_entropy", "return F.cross_entropy(x, y)"),
    ("nll_loss", "return -x.gather(1, y[:, None]).mean()"),
    ("nll_loss", "return (-x[torch.arange(4), y]).mean()"),
]


@pytest.mark.parametrize(("operation", "forward"), CLASSES)
def test_the_loss_of_a_class_is_one_kernel(program: Program, operation: str, forward: str) -> None:
    inputs = "torch.randn(4, 8), torch.randint(0, 8, (4,))"
    assert names(program(forward, arguments="x, y", inputs=inputs)) == [operation]


TRIPLETS = [
    "return F.relu((x - y).norm(dim=1) - (x - z).norm(dim=1) + 1.0).mean()",
    "return (F.pairwise_distance(x, y) - F.pairwise_distance(x, z) + 0.5).clamp(min=0).mean()",
]


@pytest.mark.parametrize("forward", TRIPLETS)
def test_the_loss_of_a_triplet_is_one_kernel(program: Program, forward: str) -> None:
    graph = program(forward, arguments="x, y, z", inputs=PAIRS + ", torch.rand(4, 8)")
    assert names(graph) == ["triplet_margin_loss"]


NOT_QUITE = [
    ("mse_loss", "return ((x - x.mean()) ** 2).mean() + y"),
    ("l1_loss", "return (x - x.mean()).abs().mean() + y"),
    ("mse_loss", "return ((x - y) ** 2).mean(-1)"),
    ("mse_loss", "return ((x - y) ** 3).mean()"),
    ("l1_loss", "return (x + y).abs().mean()"),
    ("huber_loss", "d = (x - y).abs()\nreturn torch.where(d < 1, d * d, d - 0.5).mean()"),
    ("hinge_loss", "return F.relu(2 - x * y).mean()"),
    ("binary_cross_entropy", "return -(y * x.log() + (1 - x) * (1 - y).log()).mean()"),
    ("binary_cross_entropy_with_logits", "return (F.softplus(x) + x * y).mean()"),
    ("kl_div", "return (x * (y.log() - x.log()).exp()).sum(-1).mean()"),
    ("cosine_similarity_loss", "return (2 - F.cosine_similarity(x, y, dim=1)).mean()"),
    ("dice_loss", "return 1 - (x * y).sum() / (x.sum() + y.sum())"),
    ("cross_entropy", "return (y * F.log_softmax(x, dim=-1)).sum(dim=-1).mean()"),
    ("nll_loss", "return -x.gather(1, y.long()).sum()"),
    ("triplet_margin_loss", "return F.relu((x - y).norm(dim=1) + (x - y).norm(dim=1)).mean()"),
]


@pytest.mark.parametrize(("operation", "forward"), NOT_QUITE)
def test_what_is_not_quite_it_stays_as_it_is(
    program: Program, operation: str, forward: str
) -> None:
    assert operation not in names(program(forward, arguments="x, y", inputs=PAIRS))
