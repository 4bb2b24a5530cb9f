"""A Hugging Face hub of one data set on this machine, as far as the ``datasets`` library asks."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


@contextmanager
def serving(folder: Path, name: str, commit: str) -> Iterator[str]:
    """The address of a hub that has ``folder`` as data set ``name`` at ``commit`` and no other."""
    hub = type("Hub", (_Hub,), {"folder": folder, "dataset": name, "commit": commit})
    server = ThreadingHTTPServer(("127.0.0.1", 0), hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class _Hub(BaseHTTPRequestHandler):
    """Answers for the data set ``dataset`` in ``folder`` at ``commit``."""

    folder: Path
    dataset: str
    commit: str
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def entry(self, path: Path) -> dict[str, Any]:
        place = {"path": path.relative_to(self.folder).as_posix(), "oid": "0" * 40}
        if path.is_dir():
            return {"type": "directory", **place}
        return {"type": "file", "size": path.stat().st_size, **place}

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        paths = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["paths"]
        existing = [self.folder / path for path in paths if (self.folder / path).exists()]
        self.answer(json.dumps([self.entry(path) for path in existing]).encode())

    def do_GET(self) -> None:
        folder, commit = self.folder, self.commit
        api, files = f"/api/datasets/{self.dataset}", f"/datasets/{self.dataset}/resolve/{commit}/"
        path = unquote(urlsplit(self.path).path)
        if path == f"{api}/revision/{commit}":
            siblings = [{"rfilename": self.entry(p)["path"]} for p in folder.rglob("*")]
            info = {"id": self.dataset, "sha": commit, "siblings": siblings, "private": False}
            self.answer(json.dumps(info).encode())
        elif path.startswith(f"{api}/tree/{commit}"):
            below = folder / path.removeprefix(f"{api}/tree/{commit}").strip("/")
            if below.is_dir():
                self.answer(json.dumps([self.entry(p) for p in sorted(below.iterdir())]).encode())
            else:
                self.missing("EntryNotFound")
        elif path.startswith(files):
            file = folder / path.removeprefix(files)
            self.file(file.read_bytes()) if file.is_file() else self.missing("EntryNotFound")
        else:
            self.missing("RevisionNotFound" if self.dataset in path else "RepoNotFound")

    def file(self, data: bytes) -> None:
        headers = {"ETag": '"0"', "X-Repo-Commit": self.commit, "Accept-Ranges": "bytes"}
        if (span := self.headers.get("Range")) is None:
            self.answer(data, 200, headers)
            return
        first, last = span.removeprefix("bytes=").split("-")
        end = min(int(last) + 1 if last else len(data), len(data))
        headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(data)}"
        self.answer(data[int(first) : end], 206, headers)

    def missing(self, what: str) -> None:
        self.answer(b"{}", 404, {"X-Error-Code": what})

    def answer(self, data: bytes, code: int = 200, headers: Any = ()) -> None:
        self.send_response(code)
        for key, value in dict(headers).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
