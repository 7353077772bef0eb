"""What an agent or a person is told who takes a problem apart by hand: the brief, and its facts.

Importing this package does not import torch.
"""

from runner.prompts.brief import VERSION, Brief, render, round_after
from runner.prompts.facts import Facts

__all__ = ["VERSION", "Brief", "Facts", "render", "round_after"]
