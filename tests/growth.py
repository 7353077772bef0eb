"""Speed asked as growth, since seconds tell of the machine and of what else it does."""

import time
from collections.abc import Callable


def times_longer(work: Callable[[int], Callable[[], object]], size: int, times: int) -> float:
    """Return how many times the CPU time of `size` the work of `times * size` takes.

    `work(n)` prepares work of size n and returns a function that does it, which is measured.
    """

    def least_s(n: int) -> float:
        do, took_s = work(n), []
        for _ in range(2):
            start = time.process_time()
            do()
            took_s.append(time.process_time() - start)
        return min(took_s)

    return least_s(times * size) / least_s(size)
