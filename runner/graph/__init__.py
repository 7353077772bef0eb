"""Captures a PyTorch model, normalises its program and recognises its kernels, as a typed graph."""

from runner.graph.ir import Graph, Mode
from runner.graph.normalize import normalize
from runner.graph.peak_memory import Estimate
from runner.graph.recognition.recognize import Kernel, recognize

__all__ = ["Estimate", "Graph", "Kernel", "Mode", "normalize", "recognize"]
