"""Failures of a service and of the way to it: ridden out, or told in one line."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from documents import COPIED, Make
from faulty_proxy import Asked, Fault, FaultyProxy
from object_server import BUCKET

from runner.errors import StoreError
from runner.store.objects import Address
from runner.store.runs import RunStore


@pytest.fixture
def far(credentials: None, proxy: FaultyProxy, somewhere: str, quick: None) -> RunStore:
    """A store behind the proxy, and a client that gives up after two tries."""
    address = Address(uri=f"s3://{BUCKET}/{somewhere}", endpoint_url=proxy.url)
    return RunStore(address, patient=False)


def always(fault: Fault, *methods: str) -> Callable[[Asked], Fault | None]:
    return lambda asked: fault if not methods or asked.method in methods else None


def once(fault: Fault, wanted: Callable[[Asked], bool]) -> Callable[[Asked], Fault | None]:
    """For the first request that is wanted."""
    left = [fault]
    return lambda asked: left.pop() if left and wanted(asked) else None


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("slow_down", "the service kept asking to slow down .*; the same command again does what"),
        ("reset", "the connection broke: .*; is the service up"),
        ("RequestTimeTooSkewed", "the clocks here and there differ too much .*; set this machine"),
        ("ExpiredToken", "the credentials have expired .*; get new credentials; the same command"),
        ("InvalidToken", "the session token is wrong .*; set AWS_ACCESS_KEY_ID"),
        ("AccessDenied", "access denied .*; the key needs to list, read and write there"),
        ("PermanentRedirect", "the bucket is in another region .*; set AWS_REGION"),
        ("QuotaExceeded", "QuotaExceeded: made up by a test"),
    ],
)
def test_what_does_not_pass_is_one_line_with_what_to_do(
    far: RunStore, proxy: FaultyProxy, make: Make, fault: Fault, message: str
) -> None:
    for when in (far.claim, far.check_layout, lambda: far.publish("one", *make())):
        proxy.decide = always(fault)
        with pytest.raises(StoreError) as caught:
            when()
        assert re.search(f"^{far}: {message}", str(caught.value)), str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_upload_that_ends_half_way_leaves_nothing_that_stands(
    far: RunStore, proxy: FaultyProxy, make: Make
) -> None:
    result, directory = make()
    proxy.decide = lambda asked: "ExpiredToken" if asked.number > 6 else None
    with pytest.raises(StoreError, match="expired"):
        far.publish("one", result, directory)
    proxy.decide = lambda asked: None
    assert far.find_result("one", "level1/relu") is None
    sent = set(far.objects.list_objects(""))
    assert 0 < len(sent) < len(COPIED) + 2
    proxy.asked.clear()
    far.publish("one", result, directory)
    put = {asked.path for asked in proxy.asked if asked.method == "PUT"}
    assert len(put) == len(COPIED) + 3 - len(sent)  # the zip, the large file, result.json
    assert far.damage("one", result) is None


def test_a_commit_whose_answer_was_lost_is_known_as_one_s_own(
    far: RunStore, proxy: FaultyProxy, make: Make
) -> None:
    result, directory = make()
    proxy.decide = once("lost_answer", lambda asked: asked.path.endswith("/result.json"))
    published = far.publish("one", result, directory)
    assert (published.committed.result, published.differs) == (result, ())
    tries = [a for a in proxy.asked if a.method == "PUT" and a.path.endswith("/result.json")]
    assert len(tries) == 2


@pytest.mark.parametrize("fault", ["truncate", "flip"])
def test_a_body_that_arrives_broken_is_asked_for_again(
    far: RunStore, proxy: FaultyProxy, make: Make, tmp_path: Path, fault: Fault
) -> None:
    result, directory = make()
    prefix = far.publish("one", result, directory).committed.prefix
    proxy.decide = once(fault, lambda asked: asked.method == "GET" and "tree" in asked.path)
    name = "decomposition_tree.json"
    assert far.objects.fetch(f"{prefix}/{name}", tmp_path / "tree") == result.files[name]
    assert sum("tree" in asked.path for asked in proxy.asked if asked.method == "GET") == 2


@pytest.mark.parametrize("key", [".zip", "/original.py", "/result.json"])
def test_what_arrives_otherwise_than_it_was_sent_is_not_stored(
    far: RunStore, proxy: FaultyProxy, make: Make, key: str
) -> None:
    result, directory = make()
    proxy.decide = lambda asked: (
        "flip_sent" if asked.method == "PUT" and asked.path.endswith(key) else None
    )
    with pytest.raises(StoreError, match="what arrived was not what was sent"):
        far.publish("one", result, directory)
    assert not [name for name, _ in far.objects.list_objects("") if name.endswith(key)]
    assert far.find_result("one", "level1/relu") is None


def test_bodies_that_always_break_off_are_told(
    far: RunStore, proxy: FaultyProxy, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.publish("one", *make())
    proxy.decide = always("truncate", "GET")
    with pytest.raises(StoreError, match="is the service up"):
        far.find_result("one", "level1/relu")


def test_an_answer_that_breaks_off_and_is_about_a_missing_object_is_understood(
    far: RunStore, proxy: FaultyProxy
) -> None:
    proxy.decide = lambda asked: "truncate" if asked.number == 0 else None
    assert far.find_result("one", "level1/relu") is None


def test_an_endpoint_that_is_no_object_store_is_told(far: RunStore, proxy: FaultyProxy) -> None:
    proxy.decide = always("web_page")
    with pytest.raises(StoreError, match=r"is the service up, and KDRUN_S3_ENDPOINT_URL"):
        far.claim()


@pytest.mark.parametrize("ignored", ["If-None-Match", "If-Match"])
def test_a_service_that_ignores_conditions_is_refused_before_any_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ignored: str
) -> None:
    store = RunStore(Address(uri=str(tmp_path)))
    put_if = store.objects.put_if

    def careless(key: str, data: bytes, expected: str | None) -> str:
        if (expected is None) == (ignored == "If-None-Match"):
            found = store.objects.get(key)
            expected = found.version if found else None
        return put_if(key, data, expected)

    monkeypatch.setattr(store.objects, "put_if", careless)
    with pytest.raises(StoreError, match=f"the service ignores {ignored}, so"):
        store.claim()


def test_a_file_that_changes_while_it_is_sent_is_told(bucket: RunStore, make: Make) -> None:
    result, directory = make()
    (directory / "original.py").write_text("changed")
    with pytest.raises(StoreError, match=r"original\.py: changed while it was stored"):
        bucket.publish("one", result, directory)
    assert bucket.find_result("one", "level1/relu") is None


def test_a_large_file_goes_and_comes_in_parts(
    far: RunStore,
    proxy: FaultyProxy,
    make: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runner.store.bucket.LARGE_BYTES", 16 << 20)
    result, directory = make(files={"original.py": "x" * (20 << 20)})
    proxy.decide = once("reset", lambda asked: "partNumber=2" in asked.path)
    prefix = far.publish("one", result, directory).committed.prefix
    assert sum("partNumber" in asked.path for asked in proxy.asked) == 4
    proxy.decide = once("truncate", lambda asked: "range" in asked.headers)
    digest = far.objects.fetch(f"{prefix}/original.py", tmp_path / "back")
    assert digest == result.files["original.py"]
    assert far.damage("one", result) is None
    proxy.decide = always("truncate", "GET")
    with pytest.raises(StoreError, match="is the service up") as caught:
        far.objects.fetch(f"{prefix}/original.py", tmp_path / "back")
    assert "\n" not in str(caught.value)


def test_a_service_that_refuses_newer_checksums_is_sent_none(
    far: RunStore, proxy: FaultyProxy, make: Make
) -> None:
    plain = RunStore(far.address.model_copy(update={"checksums": "when_required"}))
    plain.publish("one", *make())
    sent = [asked for asked in proxy.asked if asked.method == "PUT"]
    assert sent
    assert not [name for asked in sent for name in asked.headers if "checksum" in name]


@pytest.mark.parametrize(
    ("addressing", "start"),
    [
        ("auto", "http://s3.example.com/results/"),
        ("path", "http://s3.example.com/results/"),
        ("virtual", "http://results.s3.example.com/"),
    ],
)
def test_the_bucket_s_name_goes_where_the_service_wants_it(
    credentials: None, addressing: Any, start: str
) -> None:
    address = Address(
        uri="s3://results/x", endpoint_url="http://s3.example.com", addressing=addressing
    )
    client = RunStore(address).objects.client  # type: ignore[attr-defined]
    asked = {"Bucket": "results", "Key": "x/y"}
    assert client.generate_presigned_url("get_object", Params=asked).startswith(f"{start}x/y?")


def test_an_object_that_somebody_else_wrote_is_read_to_know_its_digest(
    bucket: RunStore, make: Make, server: object
) -> None:
    result, directory = make()
    prefix = bucket.publish("one", result, directory).committed.prefix
    client = bucket.objects.client  # type: ignore[attr-defined]
    for body, damage in ((b"class Model: ...\n", None), (b"other", "original.py")):
        root = bucket.objects.prefix  # type: ignore[attr-defined]
        client.put_object(Bucket=BUCKET, Key=f"{root}{prefix}/original.py", Body=body)
        assert bucket.damage("one", result) == damage
