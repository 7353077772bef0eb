"""Deep hedging of pfhedge: a network trades the underlying of an option along paths of prices,
given its last position; profit and loss, and their entropic risk."""

import torch
from pfhedge.instruments import BrownianStock, EuropeanOption
from pfhedge.nn import EntropicRiskMeasure, Hedger, MultiLayerPerceptron
from pfhedge.nn.functional import pl


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.option = EuropeanOption(BrownianStock(), maturity=20 / 250)
        net = MultiLayerPerceptron(in_features=4, n_layers=3, n_units=width)
        self.hedger = Hedger(net, ["log_moneyness", "expiry_time", "volatility", "prev_hedge"])
        self.risk = EntropicRiskMeasure()

    def forward(self, prices):
        self.option.ul().register_buffer("spot", prices)
        positions = self.hedger.compute_hedge(self.option)
        profit = pl(prices[:, None], positions, cost=[1e-4], payoff=self.option.payoff())
        return positions, profit, self.risk(profit)


def get_inputs():
    return [1 + 0.01 * torch.randn(128, 21).cumsum(dim=1)]


def get_init_inputs():
    return [32]
