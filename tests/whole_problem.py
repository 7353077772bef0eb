"""A problem in KernelBench's format for tests to run, and to add to."""

WHOLE = '''\
"""Doubling, as small as a problem can be."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.randn(2, 3)]


def get_init_inputs():
    return []
'''
