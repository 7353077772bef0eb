"""A thin proxy in front of the server, for failures that cannot be caused."""

import http.client
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Fault = (
    Literal["slow_down", "reset", "lost_answer", "truncate", "flip", "flip_sent", "web_page"] | str
)
"""slow_down    503 SlowDown, without asking the server
reset        the connection is reset before the server is asked
lost_answer  the server is asked, and the connection reset before the answer
truncate     half of the answer's body, then the end
flip         a bit of the answer's body is another
flip_sent    a bit of the request's body is another
web_page     200, with a page for people
CODE         403 with this error code"""


@dataclass(frozen=True)
class Asked:
    """One request, as the one who decides about faults sees it."""

    number: int
    method: str
    path: str
    headers: dict[str, str]


Decide = Callable[[Asked], Fault | None]


class FaultyProxy:
    """Forwards to a port; `decide` may be changed at any time."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.decide: Decide = lambda asked: None
        self.asked: list[Asked] = []
        self.lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def __getattr__(self, name: str) -> Any:
                if name.startswith("do_"):
                    return lambda: proxy.forward(self)
                raise AttributeError(name)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    @contextmanager
    def running(self) -> Iterator["FaultyProxy"]:
        thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            self.server.server_close()

    def forward(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        with self.lock:
            headers = {name.lower(): value for name, value in handler.headers.items()}
            asked = Asked(len(self.asked), handler.command, handler.path, headers)
            self.asked.append(asked)
            fault = self.decide(asked)
        if fault == "reset":
            return _reset(handler)
        if fault == "slow_down":
            return _refuse(handler, 503, "SlowDown")
        if fault == "web_page":
            return _answer(handler, 200, "text/html", b"<!doctype html><p>Welcome!</p>")
        if fault is not None and re.fullmatch("[A-Z][A-Za-z]+", fault):
            return _refuse(handler, 403, fault)
        if fault == "flip_sent" and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        upstream = http.client.HTTPConnection("127.0.0.1", self.target, timeout=30)
        try:
            sent = {k: v for k, v in handler.headers.items() if k.lower() != "expect"}
            upstream.request(handler.command, handler.path, body or None, sent)
            answer = upstream.getresponse()
            data = answer.read()
            told = answer.getheaders()
        except (OSError, http.client.HTTPException):
            return _reset(handler)
        finally:
            upstream.close()
        if fault == "lost_answer":
            return _reset(handler)
        handler.send_response_only(answer.status)
        for name, value in told:
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                handler.send_header(name, value)
        length = answer.getheader("Content-Length") if handler.command == "HEAD" else len(data)
        handler.send_header("Content-Length", str(length or 0))
        handler.end_headers()
        if fault == "truncate" and data:
            handler.wfile.write(data[: len(data) // 2])
            handler.close_connection = True
            return None
        if fault == "flip" and data:
            data = bytes([data[0] ^ 1]) + data[1:]
        handler.wfile.write(data)
        return None


def _reset(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def _refuse(handler: BaseHTTPRequestHandler, status: int, code: str) -> None:
    text = f"<Error><Code>{code}</Code><Message>made up by a test</Message></Error>"
    _answer(handler, status, "application/xml", text.encode())


def _answer(handler: BaseHTTPRequestHandler, status: int, kind: str, body: bytes) -> None:
    handler.send_response_only(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)
