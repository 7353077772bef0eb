"""`--store` on a real Ray and a real server: what is stored, resumed, listed and pulled."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import wait_for
from object_server import BUCKET, KEY, READER_KEY, READER_SECRET, SECRET, Server
from stored_runs import KDRUN, MEMORY, environment, kdrun, without_times, write

pytestmark = pytest.mark.cluster

KILLING = """
import os, pathlib, time
def parent(pid):
    return int(pathlib.Path(f"/proc/{{pid}}/stat").read_text().rpartition(")")[2].split()[1])
if pathlib.Path({flag!r}).exists():
    pathlib.Path({flag!r}).unlink()
    os.kill(parent(parent(os.getppid())), 9)
    time.sleep(1000)
"""


def test_a_run_goes_to_the_bucket_with_every_result(
    manifest: dict[str, Any], server: Server
) -> None:
    client = server.client()
    statuses = {row["problem"]: row["status"] for row in manifest["rows"]}
    assert statuses == {
        "1_whole": "passed",
        "2_whole": "passed",
        "3_prying": "passed",
        "4_broken": "error",
    }
    for row in manifest["rows"]:
        prefix = f"cli/first/{row['source_level']}/{row['problem']}"
        body = client.get_object(Bucket=BUCKET, Key=f"{prefix}/result.json")["Body"].read()
        assert json.loads(body)["status"] == row["status"]
        assert row["artifact_prefix"].startswith(prefix.removeprefix("cli/"))
    stored = client.get_object(Bucket=BUCKET, Key="cli/first/manifest.json")["Body"].read()
    assert json.loads(stored) == manifest


def test_a_component_opens_in_any_browser_of_buckets(
    manifest: dict[str, Any], server: Server
) -> None:
    row = next(row for row in manifest["rows"] if row["problem"] == "1_whole")
    prefix = f"cli/{row['artifact_prefix']}/level_0_kernel/"
    client = server.client()
    listed = client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"]
    answer = client.get_object(Bucket=BUCKET, Key=listed[0]["Key"])
    assert answer["ContentType"] == "text/plain; charset=utf-8"
    assert b"class Model" in answer["Body"].read()


def test_a_problem_s_code_never_sees_what_opens_the_store(
    where: Path, manifest: dict[str, Any], server: Server
) -> None:
    log = where / "output/runs/first/logs/level2/3_prying.log"
    text = log.read_text()
    assert "seen:" in text
    assert "working in:" in text
    assert "PATH" in text
    for secret in (SECRET, KEY, "not for models", server.url, "s3://"):
        assert secret not in text, secret
    stored = server.client().get_object(Bucket=BUCKET, Key="cli/first/logs/level2/3_prying.log")
    assert stored["Body"].read().decode() == text


def test_no_document_holds_what_opens_the_store(
    where: Path, manifest: dict[str, Any], server: Server
) -> None:
    assert SECRET not in json.dumps(manifest)
    assert SECRET.encode() not in (where / "output/runs/first/manifest.json").read_bytes()


def test_the_same_command_again_does_only_what_is_missing(
    where: Path, manifest: dict[str, Any], server: Server, tmp_path: Path
) -> None:
    again = kdrun(
        *("submit", "--data", "data", "--run-id", "first", "--store", f"s3://{BUCKET}/cli"),
        *("--output", str(tmp_path / "empty"), "--problem", "*_whole", "--json"),
        cwd=where,
        server=server,
    )
    assert "2 selected, 2 passed before, 0 to run" in again.stderr
    assert "Ray" not in again.stderr
    assert without_times(json.loads(again.stdout)) == without_times(manifest)
    assert again.returncode == 1  # 4_broken is still a row of this run


def test_what_passed_here_is_only_sent_to_another_store(
    where: Path, manifest: dict[str, Any], server: Server, tmp_path: Path
) -> None:
    sent = kdrun(
        *("submit", "--data", "data", "--problem", "*_whole", "--run-id", "second", "--json"),
        *("--store", str(tmp_path / "store")),
        cwd=where,
        server=server,
    )
    assert sent.returncode == 0, sent.stderr
    assert "Ray" not in sent.stderr
    rows = json.loads(sent.stdout)["rows"]
    assert [row["problem"] for row in rows] == ["2_whole", "1_whole"]
    for row in rows:
        assert (tmp_path / "store" / row["artifact_prefix"] / "original.py").is_file()


def test_a_dry_run_leaves_no_trace_in_a_store(where: Path, server: Server, first: object) -> None:
    planned = kdrun(
        *("submit", "--data", "data", "--problem", "1_*", "--dry-run", "--json"),
        *("--store", f"s3://{BUCKET}/untouched"),
        cwd=where,
        server=server,
    )
    assert planned.returncode == 0, planned.stderr
    (row,) = json.loads(planned.stdout)["problems"]
    assert (row["run"], row["why"]) == (False, "passed before, not stored yet")
    listed = server.client().list_objects_v2(Bucket=BUCKET, Prefix="untouched")
    assert listed["KeyCount"] == 0


def test_status_is_known_from_the_store_alone(
    manifest: dict[str, Any], server: Server, tmp_path: Path
) -> None:
    store = ("--store", f"s3://{BUCKET}/cli")
    reader = {"AWS_ACCESS_KEY_ID": READER_KEY, "AWS_SECRET_ACCESS_KEY": READER_SECRET}
    listed = kdrun("status", *store, cwd=tmp_path, server=server, **reader)
    assert re.search(r"first +finished .* 3 +1 +0\n", listed.stdout), listed
    keys = f"[store]\naws_access_key_id = {READER_KEY}\naws_secret_access_key = {READER_SECRET}\n"
    (tmp_path / "keys").write_text(keys)
    profile = {"AWS_PROFILE": "store", "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "keys")}
    named = {"KDRUN_STORE": store[1], "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    one = kdrun("status", "first", cwd=tmp_path, server=server, **profile, **named)
    assert "error      level1/4_broken: no class Model" in one.stdout
    assert f"kdrun pull first --store s3://{BUCKET}/cli" in one.stdout
    document = json.loads(kdrun("status", *store, "--json", cwd=tmp_path, server=server).stdout)
    assert document["runs"][0]["counts"] == {"passed": 3, "error": 1}


def test_a_pulled_run_is_verified_where_it_never_ran(
    where: Path, manifest: dict[str, Any], server: Server, tmp_path: Path
) -> None:
    store = ("--store", f"s3://{BUCKET}/cli")
    pulled = kdrun("pull", "first", "here", *store, "--level", "2", cwd=tmp_path, server=server)
    assert pulled.returncode == 0, pulled
    assert sorted(pulled.stdout.splitlines()) == [
        "2 of 2 in here",
        "pulled     here/level2/1_whole",
        "pulled     here/level2/3_prying",
    ]
    verified = kdrun("verify", "here/level2/1_whole", cwd=tmp_path, server=server)
    assert verified.stdout.startswith("passed  here/level2/1_whole"), verified
    ran = next((tmp_path / "here/level2/1_whole/level_0_kernel").glob("*.py"))
    done = subprocess.run([sys.executable, str(ran)], capture_output=True, text=True, check=True)
    assert "PASS" in done.stdout
    shown = kdrun("status", "first", "--output", "here", cwd=tmp_path, server=server)
    assert "level1/4_broken" in shown.stdout
    again = kdrun("pull", "first", "here", *store, "--json", cwd=tmp_path, server=server)
    states = {row["problem"]: row["state"] for row in json.loads(again.stdout)["problems"]}
    assert states == {
        "level1/2_whole": "pulled",
        "level1/4_broken": "pulled",
        "level2/1_whole": "there",
        "level2/3_prying": "there",
    }


def test_a_pull_that_selects_nothing_says_so(
    manifest: dict[str, Any], server: Server, tmp_path: Path
) -> None:
    command = ("pull", "first", "--store", f"s3://{BUCKET}/cli", "--problem", "nosuch*")
    done = kdrun(*command, cwd=tmp_path, server=server)
    assert done.returncode == 2
    assert done.stderr.startswith("kdrun: none of the run's 4 problems is selected")
    assert list(tmp_path.iterdir()) == []


BAD_PLACES: dict[str, tuple[str, dict[str, str], str]] = {
    "no bucket": ("s3://nosuchbucket/x", {}, "no such bucket .*; create it, or correct --store"),
    "no name": ("s3://", {}, "not a store; write s3://bucket/prefix, or a folder"),
    "bad name": ("s3://a b/x", {}, "no name of a bucket; such as s3://bucket/prefix"),
    "other scheme": ("gs://bucket/x", {}, "not a store; write s3://bucket/prefix, or a folder"),
    "unknown key": (
        f"s3://{BUCKET}/x",
        {"AWS_ACCESS_KEY_ID": "NOBODY"},
        "does not know this access key .*; set AWS_ACCESS_KEY_ID",
    ),
    "wrong secret": (
        f"s3://{BUCKET}/x",
        {"AWS_SECRET_ACCESS_KEY": "wrong"},
        "the secret key is wrong .*; set AWS_ACCESS_KEY_ID",
    ),
    "no credentials": (
        f"s3://{BUCKET}/x",
        {
            "AWS_ACCESS_KEY_ID": "",
            "AWS_SECRET_ACCESS_KEY": "",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "AWS_CONFIG_FILE": "/dev/null",
        },
        "no credentials: .*; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    ),
    "no such profile": (
        f"s3://{BUCKET}/x",
        {"AWS_PROFILE": "nobody", "AWS_CONFIG_FILE": "/dev/null"},
        "no such profile: .*; correct AWS_PROFILE",
    ),
    "read-only": (
        f"s3://{BUCKET}/read-only",
        {"AWS_ACCESS_KEY_ID": READER_KEY, "AWS_SECRET_ACCESS_KEY": READER_SECRET},
        "access denied .*; the key needs to list, read and write there",
    ),
    "nobody there": (
        f"s3://{BUCKET}/x",
        {"KDRUN_S3_ENDPOINT_URL": "http://127.0.0.1:9"},
        "does not answer: .*; is the service up, and KDRUN_S3_ENDPOINT_URL its address",
    ),
    "no such host": (
        f"s3://{BUCKET}/x",
        {"KDRUN_S3_ENDPOINT_URL": "http://nowhere.invalid"},
        "does not answer: .*; is the service up",
    ),
    "no URL": (
        f"s3://{BUCKET}/x",
        {"KDRUN_S3_ENDPOINT_URL": "localhost:9000"},
        "KDRUN_S3_ENDPOINT_URL: .*not a URL, such as https://",
    ),
    "secrets in the URL": (
        f"s3://{BUCKET}/x",
        {"KDRUN_S3_ENDPOINT_URL": "http://a:b@localhost:9000"},
        "it holds credentials",
    ),
    "a file": ("data/level1/4_broken.py", {}, "a file is where a folder must be"),
    "something else": ("data", {}, "holds something else; choose an empty place"),
}


@pytest.mark.parametrize("case", BAD_PLACES)
def test_a_store_that_cannot_be_written_is_one_line_before_any_work(
    case: str, where: Path, first: object, server: Server
) -> None:
    uri, changes, message = BAD_PLACES[case]
    started = time.monotonic()
    done = kdrun(
        *("submit", "--data", "data", "--run-id", "bad", "--no-resume", "--store", uri),
        cwd=where,
        server=server,
        **changes,
    )
    assert done.returncode == 2, done
    (line,) = done.stderr.splitlines()
    assert re.match(rf"kdrun: .*({message})", line), line
    assert done.stdout == ""
    assert time.monotonic() - started < 120
    assert not (where / "output/runs/bad").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["status", "--store", "nowhere"], r"nowhere: no store; `kdrun submit --store \S+` m"),
        (["pull", "first"], "no store is named; --store s3://bucket/prefix, or KDRUN_STORE"),
        (["pull", "nosuch", "--store", "{store}"], "no run 'nosuch' in s3://.*: first"),
        (["status", "nosuch", "--store", "{store}"], "no run 'nosuch' in s3://"),
        (["pull", "first", "/dev/null/x", "--store", "{store}"], "/dev/null/x: a file is where"),
    ],
    ids=str,
)
def test_a_store_or_a_run_that_is_not_there_is_one_line(
    arguments: list[str], message: str, first: object, server: Server, tmp_path: Path
) -> None:
    named = [a.format(store=f"s3://{BUCKET}/cli") for a in arguments]
    done = kdrun(*named, cwd=tmp_path, server=server)
    assert done.returncode == 2, done
    (line,) = done.stderr.splitlines()
    assert re.search(message, line), line


def test_a_driver_that_is_killed_is_finished_from_another_machine(
    begin: Callable[..., subprocess.Popen[str]], tmp_path: Path, server: Server
) -> None:
    """Another machine: nothing of the first one's output directory is there."""
    flag = tmp_path / "hangs"
    kills = tmp_path / "kills"
    flag.touch()
    kills.touch()
    write(tmp_path / "data", "1_whole", level=1)
    hang = f"import pathlib, time\nif pathlib.Path({str(flag)!r}).exists():\n    time.sleep(1000)"
    write(tmp_path / "data", "2_hangs_once", hang, level=1)
    write(tmp_path / "data", "3_kills_its_worker_once", KILLING.format(flag=str(kills)), level=1)
    store = f"s3://{BUCKET}/{tmp_path.name}"
    command = ["submit", "--data", "data", "--run-id", "killed", "--store", store, *MEMORY]
    run = begin(KDRUN, *command, "--output", "one", cwd=tmp_path, env=environment(server))
    client = server.client()
    committed = f"{tmp_path.name}/killed/level1/1_whole/result.json"
    wait_for(lambda: client.list_objects_v2(Bucket=BUCKET, Prefix=committed)["KeyCount"])
    time.sleep(1)
    run.kill()
    run.communicate()
    flag.unlink()
    again = kdrun(*command, "--output", "two", "--json", cwd=tmp_path, server=server)
    assert again.returncode == 0, again.stderr
    rows = {row["problem"]: row for row in json.loads(again.stdout)["rows"]}
    assert {name: row["status"] for name, row in rows.items()} == {
        "1_whole": "passed",
        "2_hangs_once": "passed",
        "3_kills_its_worker_once": "passed",
    }
    assert not (tmp_path / "two/level1/1_whole").exists()
    assert re.search("[12] passed before, [12] to run", again.stderr)


def test_a_store_that_breaks_ends_the_run_in_one_line_and_nothing_is_lost(
    tmp_path: Path, server: Server, ray_address: str
) -> None:
    store = tmp_path / "store"
    breaking = f"import os, pathlib\nif pathlib.Path({str(store)!r}).is_dir():\n"
    breaking += f"    os.rename({str(store)!r}, {str(tmp_path / 'away')!r})\n"
    breaking += f"    pathlib.Path({str(store)!r}).touch()"
    write(tmp_path / "data", "1_breaks_the_store", breaking)
    command = ("submit", "--data", "data", "--run-id", "one", "--store", "store")
    command += ("--address", ray_address)
    done = kdrun(*command, cwd=tmp_path, server=server)
    assert done.returncode == 2
    told = r"\nkdrun: .*: a file is where a folder must be; choose another --store\n$"
    assert re.search(told, done.stderr), done
    assert "Traceback" not in done.stderr
    store.unlink()
    (tmp_path / "away").rename(store)
    again = kdrun(*command, cwd=tmp_path, server=server)
    assert again.returncode == 0, again.stderr
    assert "Ray" not in again.stderr
    assert "1 passed before" in again.stderr
