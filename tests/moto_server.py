"""An S3 server for tests, inside the test process: moto on the loopback interface.

It shares Python's lock with the tests. Arrow and DuckDB let go of it while they wait for an answer, except
when an output stream is dropped unclosed: then nobody answers until Arrow gives up. So close what you open.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote, urlencode

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

ACCESS_KEY = "AKIDFORTESTS"
SECRET_KEY = "this+is/no=secret"


class Request(NamedTuple):
    """What a client asked for."""

    method: str
    path: str
    range: str | None


class _Quiet(MotoRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        pass


class S3Server:
    """A server with its buckets in memory. `requests` has all that was asked since it was last cleared."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._refuses: Callable[[Request], bool] = lambda _: False
        self._refusal = "403 Forbidden"
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        self.endpoint = f"http://127.0.0.1:{self._server.port}"
        # It must not keep a test process alive.
        self._thread = threading.Thread(target=self._server.serve_forever, name="s3", daemon=True)
        self._thread.start()

    def url(self, bucket: str, prefix: str = "") -> str:
        """The address of a bucket here, with all that is needed to get there."""
        options = {
            "endpoint_override": self.endpoint,
            "region": "us-east-1",
            "access_key": ACCESS_KEY,
            "secret_key": SECRET_KEY,
        }
        return f"s3://{bucket}/{prefix}?{urlencode(options)}"

    def new_bucket(self) -> str:
        """The name of a new, empty bucket."""
        bucket = f"b-{uuid.uuid4().hex}"
        self._put(f"/{bucket}")
        return bucket

    def publish(self, key: str) -> None:
        """Let everybody read an object, `bucket/key`."""
        self._put(f"/{key}?acl", {"x-amz-acl": "public-read"})

    @contextmanager
    def refusing(self, which: Callable[[Request], bool], answer: str = "403 Forbidden") -> Iterable[None]:
        """Answer some requests with an error; 403 is final, and 503 is tried again by most clients."""
        self._refuses, self._refusal = which, answer
        try:
            yield
        finally:
            self._refuses = lambda _: False

    def stop(self) -> None:
        """End it, with all its buckets."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _put(self, path: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        connection = HTTPConnection("127.0.0.1", self._server.port)
        # Signatures are not checked, only whether there is one.
        connection.request("PUT", path, headers={"Authorization": f"AWS {ACCESS_KEY}:none", **headers})
        assert connection.getresponse().status == 200
        connection.close()

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = unquote(environ["PATH_INFO"].encode("latin-1").decode())
        request = Request(environ["REQUEST_METHOD"], path, environ.get("HTTP_RANGE"))
        self.requests.append(request)
        if self._refuses(request):
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response(self._refusal, [("Content-Length", "0")])
            return [b""]
        return self._moto(environ, start_response)
