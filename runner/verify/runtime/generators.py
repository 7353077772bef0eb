"""Reads and sets torch's random number generators: the CPU's, and that of the device in use."""

import torch


def generator_states(device: str) -> tuple[torch.Tensor, ...]:
    """Return the states of the generators that a program on a device may draw from."""
    on_cpu = torch.get_rng_state()
    if device == "cpu":
        return (on_cpu,)
    return on_cpu, torch.get_device_module(device).get_rng_state()


def set_generators(device: str, states: tuple[torch.Tensor, ...]) -> None:
    """Set the generators to states that `generator_states` returned."""
    torch.set_rng_state(states[0])
    if device != "cpu":
        torch.get_device_module(device).set_rng_state(states[1])
