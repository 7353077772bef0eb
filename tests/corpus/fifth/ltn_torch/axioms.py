"""A logic tensor network: how far the axioms on people who smoke and who are friends hold."""

import ltn
import torch


class Pairs(torch.nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(inputs, 64), torch.nn.ELU(), torch.nn.Linear(64, 1)
        )

    def forward(self, *parts):
        return torch.sigmoid(self.net(torch.cat(parts, dim=-1)))


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.smokes = ltn.Predicate(Pairs(width))
        self.cancer = ltn.Predicate(Pairs(width))
        self.friends = ltn.Predicate(Pairs(2 * width))
        self.negate = ltn.Connective(ltn.fuzzy_ops.NotStandard())
        self.both = ltn.Connective(ltn.fuzzy_ops.AndProd())
        self.implies = ltn.Connective(ltn.fuzzy_ops.ImpliesReichenbach())
        self.every = ltn.Quantifier(ltn.fuzzy_ops.AggregPMeanError(p=2), quantifier="f")
        self.some = ltn.Quantifier(ltn.fuzzy_ops.AggregPMean(p=6), quantifier="e")
        self.agree = ltn.fuzzy_ops.SatAgg()

    def forward(self, people):
        x, y = ltn.Variable("x", people), ltn.Variable("y", people)
        axioms = [
            self.every(x, self.negate(self.friends(x, x))),
            self.every([x, y], self.implies(self.friends(x, y), self.friends(y, x))),
            self.every(x, self.some(y, self.friends(x, y))),
            self.every(
                [x, y], self.implies(self.both(self.friends(x, y), self.smokes(x)), self.smokes(y))
            ),
            self.every(x, self.implies(self.smokes(x), self.cancer(x))),
        ]
        return self.agree(*axioms), torch.stack([axiom.value for axiom in axioms])


def get_inputs():
    return [torch.randn(30, 16)]


def get_init_inputs():
    return [16]
