"""Routers, experts, bags of embeddings and scans are recognised however they are spelled."""

import pytest
from programs import Program, names

ROUTERS = [
    "v, i = x.topk(2)\nreturn torch.zeros_like(x).scatter(1, i, v.softmax(-1))",
    "v, i = x.topk(2)\nreturn torch.full_like(x, float('-inf')).scatter(1, i, v).softmax(-1)",
    "v, i = x.topk(2)\nreturn v.softmax(-1), i",
    "v, i = x.softmax(-1).topk(2)\nreturn v / v.sum(-1, keepdim=True), i",
    "p = F.softmax(x.float(), dim=-1)\nv, i = torch.topk(p, 2)\nv /= v.sum(-1, True)\nreturn v, i",
    "v, i = torch.topk(x.sigmoid(), 2)\nreturn v / (v.sum(-1, keepdim=True) + 1e-20) * 2.5, i",
    "v, i = x.topk(2)\nreturn torch.zeros(4, 8).scatter(1, i, v.softmax(-1))",
    "p = x.softmax(-1)\nv, i = p.topk(2)\n"
    "return torch.zeros_like(p).scatter(1, i, v / v.sum(-1, keepdim=True))",
    "v, i = x.softmax(-1).topk(2)\nreturn torch.zeros(4, 8).scatter(-1, i, v)",
    "v, i = x.softmax(-1).topk(2)\nreturn v * 2, i + 1",
    "v, i = x.softmax(-1).max(-1)\nreturn v * 2, i + 1",
]


@pytest.mark.parametrize("forward", ROUTERS)
def test_choosing_the_best_experts_is_one_kernel(program: Program, forward: str) -> None:
    assert names(program(forward))[0] == "topk_router"
    assert set(names(program(forward))) <= {"topk_router", "mul", "add"}


def test_a_router_right_after_its_projection_is_a_kernel_of_its_own(program: Program) -> None:
    forward = "v, i = torch.topk(self.gate(x), k=2)\nreturn torch.softmax(v, dim=1), i"
    graph = program(forward, init="self.gate = nn.Linear(8, 4)")
    assert names(graph) == ["linear", "topk_router"]


NO_ROUTERS = {
    "the best classes are what the model gives back": "return x.softmax(-1).topk(2)",
    "only the largest probability": "return x.softmax(-1).max(-1)[0] * 2",
    "normalised by something else": "v, i = x.topk(2)\nreturn v / v.sum(), i",
}


@pytest.mark.parametrize("forward", NO_ROUTERS.values(), ids=NO_ROUTERS)
def test_the_largest_of_some_numbers_are_no_router(program: Program, forward: str) -> None:
    assert "topk_router" not in names(program(forward))


DISPATCHED = {
    "sorted by expert, then put back": """\
        v, i = torch.topk(self.gate(x), 2)
        w = v.softmax(-1)
        order = i.flatten().argsort()
        h = self.up(x[order // 2]).relu() * w.flatten()[order][:, None]
        return torch.zeros_like(x).index_add(0, order // 2, h)
        """,
    "sorted by expert, then summed": """\
        w, i = torch.topk(self.gate(x).softmax(-1), 2)
        w = w / w.sum(-1, keepdim=True)
        order = i.view(-1).argsort()
        h = self.up(torch.index_select(x, 0, order // 2)).relu()
        h = (h * w.view(-1)[order].unsqueeze(-1))[order.argsort()]
        return h.view(4, 2, 8).sum(dim=1)
        """,
    "added where they came from": """\
        w, i = torch.topk(self.gate(x).softmax(-1), 2)
        w = w / w.sum(-1, keepdim=True)
        order = i.view(-1).argsort()[:3]
        out = torch.zeros_like(x)
        out[order // 2] += self.up(x[order // 2]).relu() * w.view(-1)[order, None]
        return out
        """,
}


@pytest.mark.parametrize("forward", DISPATCHED.values(), ids=DISPATCHED)
def test_rows_go_to_their_experts_and_come_back(program: Program, forward: str) -> None:
    init = "self.gate, self.up = nn.Linear(8, 4), nn.Linear(8, 8)"
    found = names(program(forward, init=init))
    assert {"topk_router", "expert_dispatch", "expert_combine"} <= set(found)
    assert found.count("expert_dispatch") == 1
    assert not {"sum", "index_add"} & set(found)


def test_experts_that_all_run_are_combined_by_the_routers_weights(program: Program) -> None:
    forward = """\
    v, i = self.gate(x).topk(2)
    w = torch.zeros(4, 3).scatter(1, i, v.softmax(-1))
    return (torch.stack([self.up(x), self.up(x + 1), self.up(x + 2)], 1) * w[:, :, None]).sum(1)
    """
    init = "self.gate, self.up = nn.Linear(8, 3), nn.Linear(8, 8)"
    assert names(program(forward, init=init))[-1] == "expert_combine"


NOT_COMBINED = {
    "the share of one expert": "(w * (i == 1)).sum(-1, keepdim=True) * x",
    "a loss of balance": "((i == 1).float().mean(0) * w.mean(0)).sum()",
    "scaled numbers": "0.1 * w.sum() + 0.2 * w.mean()",
}


@pytest.mark.parametrize("result", NOT_COMBINED.values(), ids=NOT_COMBINED)
def test_a_routers_weights_that_weigh_no_rows_combine_no_experts(
    program: Program, result: str
) -> None:
    forward = f"""\
w, i = self.gate(x).softmax(-1).topk(2)
return {result}
"""
    assert "expert_combine" not in names(program(forward, init="self.gate = nn.Linear(8, 4)"))


COMBINED = {
    "einsum": "return torch.einsum('bec,be->bc', h, w)",
    "einsum, the weights first": "return torch.einsum('te,teh->th', w, h)",
    "matmul": "return (w[:, None] @ h).squeeze(1)",
    "bmm": "return torch.bmm(w.unsqueeze(1), h).squeeze(1)",
    "a sum": "return (h * w[..., None]).sum(dim=1)",
}
GATHERED = """\
v, i = torch.topk(self.gate(x), 2)
w = v.softmax(-1)
h = torch.einsum("beck,bk->bec", self.weight[i], x) + self.bias[i, ...]
"""
STACKS = """\
self.gate = nn.Linear(8, 4)
self.weight, self.bias = (nn.Parameter(torch.ones(4, 6, *n)) for n in ((8,), ()))
"""


@pytest.mark.parametrize("combined", COMBINED.values(), ids=COMBINED)
def test_weights_picked_for_each_token_are_a_linear_of_experts(
    program: Program, combined: str
) -> None:
    graph = program(GATHERED + combined, init=STACKS)
    assert names(graph) == ["linear", "topk_router", "expert_linear", "expert_combine"]


def test_experts_without_a_bias_by_a_batched_product(program: Program) -> None:
    forward = """\
    v, i = torch.topk(self.gate(x), 1)
    h = torch.bmm(torch.index_select(self.weight, 0, i.flatten()), x[:, :, None]).squeeze(-1)
    return h * v.sigmoid()
    """
    found = names(program(forward, init=STACKS))
    assert found[:3] == ["linear", "topk_router", "expert_linear"]


BATCHED = {
    "by einsum": "h = torch.einsum('td,edf->etf', x, self.weight.mT) + self.bias[:, None]",
    "by bmm": "h = torch.bmm(x.expand(4, 4, 8), self.weight.mT)",
    "by matmul": "h = x[None] @ self.weight.mT + self.bias.unsqueeze(1)",
}


@pytest.mark.parametrize("product", BATCHED.values(), ids=BATCHED)
def test_experts_that_all_run_are_a_linear_of_experts(program: Program, product: str) -> None:
    forward = f"""\
p = self.gate(x).softmax(-1)
v, i = p.topk(2)
w = torch.zeros_like(p).scatter(1, i, v / v.sum(-1, keepdim=True))
{product}
return torch.einsum("etf,te->tf", h, w)
"""
    graph = program(forward, init=STACKS)
    assert names(graph) == ["linear", "topk_router", "expert_linear", "expert_combine"]


def test_a_projection_of_heads_is_no_linear_of_experts(program: Program) -> None:
    init = "self.heads = nn.Parameter(torch.ones(4, 8, 6))"
    graph = program("return torch.einsum('td,hdf->thf', x, self.heads)", init=init)
    assert names(graph) == ["einsum"]


def test_vectors_that_are_picked_are_no_experts(program: Program) -> None:
    graph = program(
        "return F.linear(self.words(i), self.weight)",
        arguments="i",
        inputs="torch.randint(0, 9, (4,))",
        init="self.words = nn.Embedding(9, 8)\nself.weight = nn.Parameter(torch.ones(6, 8))",
    )
    assert names(graph) == ["embedding", "linear"]


def test_a_product_with_what_no_router_chose_combines_no_experts(program: Program) -> None:
    graph = program(
        "w = self.gate(x).softmax(-1)\nreturn torch.einsum('bec,be->bc', h, w)",
        arguments="x, h",
        inputs="torch.randn(4, 8), torch.randn(4, 4, 5)",
        init=STACKS,
    )
    assert "expert_combine" not in names(graph)


def test_rows_that_the_caller_chooses_are_only_indexed(program: Program) -> None:
    graph = program(
        "return x[i] * 2",
        arguments="x, i",
        inputs="torch.randn(4, 8), torch.randint(0, 4, (3,))",
    )
    assert names(graph) == ["index", "mul"]
    graph = program(
        "return (x * w[:, None]).sum(0)",
        arguments="x, w",
        inputs="torch.randn(4, 8), torch.rand(4)",
    )
    assert "expert_combine" not in names(graph)


BAGS = [
    "return self.words(i).sum(dim=1)",
    "return self.words(i).mean(1)",
    "return F.embedding(i, self.words.weight).amax(-2)",
]


@pytest.mark.parametrize("forward", BAGS)
def test_rows_of_a_table_put_together_are_a_bag(program: Program, forward: str) -> None:
    graph = program(
        forward,
        arguments="i",
        inputs="torch.randint(0, 9, (4, 5))",
        init="self.words = nn.Embedding(9, 8)",
    )
    assert names(graph) == ["embedding_bag"]


def test_the_operator_for_bags_and_numbers_within_a_row(program: Program) -> None:
    parts = {"arguments": "i", "inputs": "torch.randint(0, 9, (4, 5))"}
    graph = program("return self.bag(i)", init="self.bag = nn.EmbeddingBag(9, 8)", **parts)
    assert names(graph) == ["embedding_bag"]
    graph = program("return self.e(i).sum(-1)", init="self.e = nn.Embedding(9, 8)", **parts)
    assert names(graph) == ["embedding", "sum"]


SCANS = [
    ("cumsum", "return torch.cumsum(x, dim=1)"),
    ("reverse_cumsum", "return x.flip(1).cumsum(1).flip(1)"),
    ("reverse_cumsum", "return torch.flip(torch.cumsum(torch.flip(x, [-1]), dim=-1), dims=(-1,))"),
    ("exclusive_cumsum", "return x.cumsum(-1) - x"),
    ("exclusive_cumsum", "return -x + torch.cumsum(x, 1)"),
    (
        "segment_sum",
        """\
        s = x.cumsum(-1)
        m = torch.tril(torch.ones(8, 8, dtype=torch.bool))
        return (s[..., :, None] - s[..., None, :]).masked_fill(~m, float("-inf"))
        """,
    ),
    (
        "segment_sum",
        """\
        h = x[..., None].expand(4, 8, 8)
        m = torch.ones(8, 8, dtype=torch.bool)
        h = h.masked_fill(~m.tril(-1), 0).cumsum(-2)
        return h.masked_fill(~m.tril(0), -torch.inf)
        """,
    ),
]


@pytest.mark.parametrize(("operation", "forward"), SCANS)
def test_a_scan_is_one_kernel(program: Program, operation: str, forward: str) -> None:
    assert names(program(forward)) == [operation]


NO_SCANS = [
    ("reverse_cumsum", "return x.flip(0).cumsum(1).flip(0)"),
    ("exclusive_cumsum", "return x.cumsum(-1) - x * 2"),
    (
        "segment_sum",
        "s = x.cumsum(-1)\nreturn (s[:, None] + s[:, :, None]).masked_fill(x[0] > 0, 0)",
    ),
]


@pytest.mark.parametrize(("operation", "forward"), NO_SCANS)
def test_what_is_not_quite_a_scan_stays_as_it_is(
    program: Program, operation: str, forward: str
) -> None:
    assert operation not in names(program(forward))


A_SUM_IN_STEPS = """\
    weights, chosen = torch.topk(self.gate(x).softmax(-1), 2)
    weights = torch.zeros(4, 3).scatter(-1, chosen, weights)
    y = torch.zeros_like(x)
    for n in range(3):
        y = y + self.experts[n](x) * weights[:, n, None]
    return {}
"""
EXPERTS = (
    "self.gate = nn.Linear(8, 3)\nself.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))"
)


@pytest.mark.parametrize("result", ["y", "x + y"])
def test_a_sum_over_experts_in_steps_is_one_kernel(program: Program, result: str) -> None:
    found = names(program(A_SUM_IN_STEPS.format(result), init=EXPERTS))
    assert found.count("expert_combine") == 1
    assert found.count("mul") == 0
    assert found.count("add") == (result != "y")


def test_a_sum_whose_shares_no_router_chose_is_none(program: Program) -> None:
    forward = A_SUM_IN_STEPS.format("y").replace("scatter(-1, chosen, weights)", "add(x[:, :3])")
    assert "expert_combine" not in names(program(forward, init=EXPERTS))


def test_the_best_of_many_are_picked_and_not_sent_to_experts(program: Program) -> None:
    found = names(program("return x[self.score(x).squeeze(-1).topk(3).indices].relu()",
                          init="self.score = nn.Linear(8, 1)"))  # fmt: skip
    assert "index" in found


def test_putting_what_a_mask_selects_where_it_was_is_a_where(program: Program) -> None:
    forward = "far = x > y\nx = x.clone()\nx[far] = {value}\nreturn x * 2"
    inputs = "torch.rand(4, 8), torch.rand(4, 8)"
    graph = program(forward.format(value="y[far]"), arguments="x, y", inputs=inputs)
    assert "where" in names(graph)
    assert "index_put" not in names(graph)
    graph = program(forward.format(value="y[~far][:1]"), arguments="x, y", inputs=inputs)
    assert "where" not in names(graph)
