"""Writes the brief for an agent or a person who decomposes a problem by hand, and its facts.

Importing this package does not import torch.
"""

from runner.prompts.brief import VERSION, Brief, render_brief, render_later_round
from runner.prompts.facts import Facts

__all__ = ["VERSION", "Brief", "Facts", "render_brief", "render_later_round"]
