"""What people paste from docs/storage.md: rights that are enough, rules that a bucket takes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import Make, manifest, row, save
from object_server import Server

from runner.store.pull import pull
from runner.store.runs import RunStore

PAGE = (Path(__file__).parents[2] / "docs/storage.md").read_text()
POLICY, RULES = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
NEEDS = {
    "ListObjectsV2": "s3:ListBucket",
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
}
"""Operation -> what a policy has to allow for it, as AWS documents it."""


@pytest.fixture
def asked(bucket: RunStore) -> Iterator[set[str]]:
    """The operations that the store's client has been asked for."""
    seen: set[str] = set()

    def note(event_name: str, **_: object) -> None:
        seen.add(event_name.rpartition(".")[2])

    events = bucket.objects.client.meta.events  # type: ignore[attr-defined]
    events.register("before-call.s3", note)
    yield seen
    events.unregister("before-call.s3", note)


def test_the_policy_allows_what_kdrun_asks_for_and_nothing_else(
    bucket: RunStore, make: Make, asked: set[str], tmp_path: Path
) -> None:
    allowed = set()
    for statement in POLICY["Statement"]:
        allowed |= {*([a] if isinstance(a := statement["Action"], str) else a)}
    result, directory = make(files={"original.py": "x", "weights.txt": "0.125\n" * 1_500_000})
    bucket.claim()
    standing = bucket.publish("one", result, directory).committed
    save(bucket, manifest(row(result.label, standing.sha256)))
    assert "UploadPart" in asked
    assert {NEEDS[name] for name in asked} == allowed - {"s3:AbortMultipartUpload"}

    asked.clear()
    bucket.check_layout()
    (run,) = map(bucket.manifest, bucket.run_ids())
    assert all(
        each.is_present for each in pull(bucket, run, tmp_path / "to", lambda _: True, print)
    )
    assert bucket.damage("one", result) is None
    assert {NEEDS[name] for name in asked} == {"s3:ListBucket", "s3:GetObject"}


def test_the_rules_are_ones_that_a_bucket_takes(server: Server) -> None:
    client = server.client()
    client.create_bucket(Bucket="with-rules")
    client.put_bucket_lifecycle_configuration(Bucket="with-rules", LifecycleConfiguration=RULES)
    taken = client.get_bucket_lifecycle_configuration(Bucket="with-rules")["Rules"]
    assert {rule["ID"]: rule["Filter"] for rule in taken} == {
        rule["ID"]: rule["Filter"] for rule in RULES["Rules"]
    }
