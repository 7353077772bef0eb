"""A conditional INN as a graph of nodes: all couplings read a condition that a small network
embeds."""

import torch
from FrEIA.framework import ConditionNode, GraphINN, InputNode, Node, OutputNode
from FrEIA.modules import PermuteRandom, RNVPCouplingBlock


def dense(inputs, outputs):
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, 64), torch.nn.LeakyReLU(), torch.nn.Linear(64, outputs)
    )


class Model(torch.nn.Module):
    def __init__(self, features, couplings):
        super().__init__()
        self.embed = torch.nn.Linear(10, 16)
        condition = ConditionNode(16, name="condition")
        nodes = [InputNode(features, name="input")]
        for i in range(couplings):
            nodes.append(
                Node(
                    nodes[-1],
                    RNVPCouplingBlock,
                    {"subnet_constructor": dense},
                    conditions=condition,
                )
            )
            nodes.append(Node(nodes[-1], PermuteRandom, {"seed": i}))
        self.flow = GraphINN([*nodes, condition, OutputNode(nodes[-1])])

    def forward(self, x, label):
        return self.flow(x, c=[self.embed(label)])


def get_inputs():
    return [
        torch.randn(32, 6),
        torch.nn.functional.one_hot(torch.randint(0, 10, (32,)), 10).float(),
    ]


def get_init_inputs():
    return [6, 4]
