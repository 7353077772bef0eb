"""A recurrent encoder of words in the Poincare ball: Mobius GRU cells and hyperplane distances."""

import geoopt
import geoopt.layers.stereographic as layers
import torch


class MobiusLinear(torch.nn.Module):
    def __init__(self, ball, inputs, outputs):
        super().__init__()
        self.ball = ball
        self.weight = torch.nn.Parameter(torch.randn(outputs, inputs) / inputs**0.5)
        bias = ball.random_normal(outputs, std=0.01)
        self.bias = geoopt.ManifoldParameter(bias, manifold=ball)

    def forward(self, x):
        return self.ball.mobius_add(self.ball.mobius_matvec(self.weight, x), self.bias)


class Model(torch.nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.ball = geoopt.PoincareBall(c=1.0, learnable=True)
        table = self.ball.random_normal(words, width, std=0.05)
        self.table = geoopt.ManifoldParameter(table, manifold=self.ball)
        self.inputs = torch.nn.ModuleList([MobiusLinear(self.ball, width, width) for _ in range(3)])
        self.states = torch.nn.ModuleList([MobiusLinear(self.ball, width, width) for _ in range(3)])
        self.planes = layers.Distance2StereographicHyperplanes(width, 20, ball=self.ball)

    def forward(self, tokens):
        ball = self.ball
        state = torch.zeros(tokens.shape[0], self.table.shape[1])
        for step in range(tokens.shape[1]):
            x = self.table[tokens[:, step]]
            a, b, c = (layer(x) for layer in self.inputs)
            reset = torch.sigmoid(ball.logmap0(ball.mobius_add(self.states[0](state), a)))
            update = torch.sigmoid(ball.logmap0(ball.mobius_add(self.states[1](state), b)))
            kept = ball.mobius_pointwise_mul(reset, state)
            new = ball.mobius_fn_apply(torch.tanh, ball.mobius_add(self.states[2](kept), c))
            change = ball.mobius_add(-state, new)
            state = ball.mobius_add(state, ball.mobius_pointwise_mul(update, change))
        return self.planes(state), ball.dist0(state)


def get_inputs():
    return [torch.randint(0, 2000, (4, 16))]


def get_init_inputs():
    return [2000, 48]
