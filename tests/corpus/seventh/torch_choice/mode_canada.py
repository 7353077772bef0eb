"""Conditional logit of torch-choice: utilities of four ways to travel from prices, income and the
items' own constants; log-probabilities of the choices."""

import torch
from torch_choice.data import ChoiceDataset
from torch_choice.model import ConditionalLogitModel


class Model(torch.nn.Module):
    def __init__(self, items):
        super().__init__()
        self.items = items
        self.model = ConditionalLogitModel(
            coef_variation_dict={
                "itemsession_cost": "constant",
                "session_income": "item",
                "itemsession_time": "item-full",
                "intercept": "item",
            },
            num_param_dict={
                "itemsession_cost": 3,
                "session_income": 1,
                "itemsession_time": 1,
                "intercept": 1,
            },
            num_items=items,
        )

    def forward(self, chosen, cost, income, time):
        trips = torch.arange(len(chosen))
        batch = ChoiceDataset(
            item_index=chosen,
            session_index=trips,
            num_items=self.items,
            itemsession_cost=cost,
            session_income=income,
            itemsession_time=time,
        )
        return torch.log_softmax(self.model(batch), dim=-1)


def get_inputs():
    return [
        torch.randint(0, 4, (500,)),
        torch.rand(500, 4, 3),
        torch.rand(500, 1),
        torch.rand(500, 4, 1),
    ]


def get_init_inputs():
    return [4]
