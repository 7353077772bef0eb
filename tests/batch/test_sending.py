"""What is refused, and in which words, before a run is on a cluster."""

import http.server
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import runner
from runner.batch.remote import remote_runs
from runner.batch.remote.job_package import JOB_FILE, JobDescription
from runner.batch.remote.job_run import drive_sent_run
from runner.batch.remote.jobs import JobClient, dashboard_url
from runner.config import Settings
from runner.errors import ClusterError, KdrunError, MissingPackageError, UsageError
from runner.store import Address, RunStore
from runner.store.manifest import Job


def test_an_address_where_nobody_answers_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(ClusterError, match=f"no Ray dashboard at http://127.0.0.1:{port}: .*refus"):
        JobClient(f"127.0.0.1:{port}")


def test_a_server_that_is_not_ray_s_dashboard_is_one_line() -> None:
    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            return

    server = http.server.HTTPServer(("127.0.0.1", 0), Silent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.raises(ClusterError, match=r"no Ray dashboard at .*: Version check returned 404"):
        JobClient(f"127.0.0.1:{server.server_port}")
    server.shutdown()


def test_a_machine_without_ray_s_job_client_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with socket.create_server(("127.0.0.1", 0)) as anybody:
        address = f"127.0.0.1:{anybody.getsockname()[1]}"
        with pytest.raises(MissingPackageError, match=r"pip install 'kdrun\[cluster\]'"):
            JobClient(address)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("head", "http://head:8265"),
        ("10.0.0.5:9000", "http://10.0.0.5:9000"),
        ("https://ray.example.com/", "https://ray.example.com"),
        ("http://head:8265/", "http://head:8265"),
    ],
)
def test_an_address_is_that_of_a_dashboard(said: str, meant: str) -> None:
    assert dashboard_url(said) == meant


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"on_cluster": "ray://head:10001"}, "not its dashboard; such as http://head:8265"),
        ({"on_cluster": "ftp://head"}, "not an address"),
        ({"on_cluster": "head:port"}, "not an address"),
        ({"on_cluster": "head:8265"}, "results must go where both sides reach them"),
        ({"on_cluster": "localhost", "address": "auto"}, "driven from here or there"),
        (
            {"on_cluster": "head", "store": "s3://a/b", "send_credentials": True},
            "no AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
        ),
    ],
)
def test_what_cannot_be_a_run_on_a_cluster_is_refused_before_anything_is_asked(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        remote_runs.check_settings(Settings.model_validate(changes))


def test_a_job_s_id_can_be_part_of_an_address_and_is_new_each_time() -> None:
    first, second = remote_runs._new_job_id("night 3?"), remote_runs._new_job_id("night 3?")
    assert re.fullmatch(r"kdrun-night-3--[0-9a-f]{6}", first)
    assert first != second


def test_a_driver_that_sees_another_place_than_its_sender_does_not_begin(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    write("whole", tmp_path / "problems")
    store = tmp_path / "store"
    RunStore(Address(uri=str(store))).claim()
    settings = Settings(store=str(store), run_id="one", address="auto", output=tmp_path / "out")
    sent = JobDescription(
        job=Job(address="http://head:8265", job_id="kdrun-one-1"),
        settings=settings.model_dump(mode="json"),
        arguments={},
        origin="problems",
        data="problems",
        problems=["level1/whole"],
        aside=None,
    )
    (tmp_path / JOB_FILE).write_text(sent.model_dump_json())
    with pytest.raises(KdrunError, match=r"the cluster does not see run one in .*store; name a"):
        drive_sent_run(tmp_path)


def test_nodes_that_lack_what_kdrun_needs_are_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", "runner.batch.remote.job_entry"],
        cwd=Path(runner.__file__).parents[1],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert re.fullmatch(r"kdrun: its nodes need what kdrun needs, .*: No module .*\n", done.stderr)
