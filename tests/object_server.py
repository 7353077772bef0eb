"""A real S3 server on loopback, of a wheel: started, killed and started again by tests."""

import json
import random
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

OWNER_KEY, OWNER_SECRET = "OWNER", "the-first-secret"
KEY, SECRET = "WRITER", "a-secret-of-the-store"
READER_KEY, READER_SECRET = "READER", "another-secret"
BUCKET = "results"
WEED = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")

IDENTITIES = {
    "identities": [
        {
            "name": "owner",
            "credentials": [{"accessKey": OWNER_KEY, "secretKey": OWNER_SECRET}],
            "actions": ["Admin"],
        },
        {
            "name": "writer",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Read", "Write", "List"],
        },
        {
            "name": "reader",
            "credentials": [{"accessKey": READER_KEY, "secretKey": READER_SECRET}],
            "actions": ["Read", "List"],
        },
    ]
}


class Server:
    """One server with its data; the same port and data after a restart."""

    def __init__(self, folder: Path, volume_mib: int = 64) -> None:
        self.folder = folder
        self.volume_mib = volume_mib
        (folder / "data").mkdir(parents=True)
        (folder / "s3.json").write_text(json.dumps(IDENTITIES))
        self.port = free_ports()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert WEED is not None
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(WEED, "server", "-master.telemetry=false", "-ip=127.0.0.1"),
                    *("-ip.bind=127.0.0.1", f"-dir={self.folder / 'data'}", "-s3"),
                    *(f"-s3.port={self.port}", f"-s3.config={self.folder / 's3.json'}"),
                    *("-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0"),
                    *("-volume.preStopSeconds=0", f"-master.port={self.port + 1}"),
                    *(f"-volume.port={self.port + 2}", f"-filer.port={self.port + 3}"),
                    *("-volume.max=50", f"-master.volumeSizeLimitMB={self.volume_mib}"),
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait_until_it_writes()

    def kill(self) -> None:
        """As a power cut would end it: it stops unreliably when it is asked to."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def client(self) -> Any:
        """The owner's."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id=OWNER_KEY,
            aws_secret_access_key=OWNER_SECRET,
            region_name="us-east-1",
            config=Config(
                s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, read_timeout=10
            ),
        )

    def _wait_until_it_writes(self) -> None:
        """The first write comes seconds after the first answer."""
        client = self.client()
        end = time.monotonic() + 240
        while time.monotonic() < end:
            with suppress(Exception):
                if BUCKET not in {b["Name"] for b in client.list_buckets()["Buckets"]}:
                    client.create_bucket(Bucket=BUCKET)
                client.put_object(Bucket=BUCKET, Key="ready", Body=b"1")
                client.delete_object(Bucket=BUCKET, Key="ready")
                return
            time.sleep(0.2)
        raise AssertionError((self.folder / "log").read_text(errors="replace")[-3000:])


def free_ports() -> int:
    """The first of four ports that are free, as are their twins 10000 above."""
    for _ in range(100):
        first = random.SystemRandom().randrange(20000, 32000)
        if all(_is_free(first + n + twin) for n in range(4) for twin in (0, 10000)):
            return first
    raise AssertionError("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
