"""Exports a run's metrics to Prometheus, through the metrics ports of Ray's nodes.

Their names there begin with `ray_kdrun_`. A counter starts at zero with each driver, which
Prometheus expects of a restarted process.
"""

from collections.abc import Sequence

from runner.batch.run import Watcher
from runner.store.manifest_row import Repeat, Row

STAGE_SECONDS = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0]


class Metrics(Watcher):
    """A watcher that updates metrics; usable while this process is connected to Ray."""

    def __init__(self, run_id: str) -> None:
        from ray.util.metrics import Counter, Gauge, Histogram

        self.run = {"run": run_id}
        self.problems = Counter(
            "kdrun_problems", "Problems that have ended.", ("run", "level", "status")
        )
        self.repeats = Counter(
            "kdrun_repeats", "Attempts that another one followed.", ("run", "cause")
        )
        self.seconds = Histogram(
            "kdrun_stage_seconds",
            "Wall time of a stage of a problem's last attempt.",
            STAGE_SECONDS,
            ("run", "stage"),
        )
        self.uploaded = Counter("kdrun_uploaded_bytes", "Sent to the store.", ("run",))
        self.cpu = Counter("kdrun_cpu_seconds", "Processor time of problems.", ("run",))
        self.gpu = Counter("kdrun_gpu_seconds", "GPUs held, times how long.", ("run",))
        self.now = Gauge("kdrun_running", "Problems that are being worked on.", ("run",))

    def on_stages(self, stages: Sequence[tuple[str, str]]) -> None:
        self.now.set(len(stages), self.run)

    def on_retry(self, label: str, repeat: Repeat) -> None:
        self.repeats.inc(1, self.run | {"cause": repeat.cause})

    def on_problem_end(self, row: Row, ended_count: int) -> None:
        if not row.attempts:  # The result is an earlier run's.
            return
        self.problems.inc(1, self.run | {"level": row.source_level, "status": row.status})
        for stage, seconds in row.seconds_by_stage.items():
            self.seconds.observe(seconds, self.run | {"stage": stage})
        for counter, value in (
            (self.uploaded, row.uploaded_bytes),
            (self.cpu, row.cpu_seconds),
            (self.gpu, row.gpu_seconds),
        ):
            if value:
                counter.inc(value, self.run)
