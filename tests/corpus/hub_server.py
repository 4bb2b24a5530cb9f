"""A Hugging Face hub of one data set on this machine, as far as the ``datasets`` library asks."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


@contextmanager
def serving(folder, name, commit):
    """The address of a hub that has ``folder`` as data set ``name`` at ``commit`` and no other."""
    api, files = f"/api/datasets/{name}", f"/datasets/{name}/resolve/{commit}/"

    def entry(path):
        place = {"path": path.relative_to(folder).as_posix(), "oid": "0" * 40}
        if path.is_dir():
            return {"type": "directory", **place}
        return {"type": "file", "size": path.stat().st_size, **place}

    class Hub(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def do_HEAD(self):
            self.do_GET()

        def do_POST(self):
            paths = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["paths"]
            self.send_json([entry(folder / path) for path in paths if (folder / path).exists()])

        def do_GET(self):
            path = unquote(urlsplit(self.path).path)
            if path == f"{api}/revision/{commit}":
                siblings = [{"rfilename": entry(p)["path"]} for p in folder.rglob("*")]
                self.send_json({"id": name, "sha": commit, "siblings": siblings, "private": False})
            elif path.startswith(f"{api}/tree/{commit}"):
                below = folder / path.removeprefix(f"{api}/tree/{commit}").strip("/")
                if below.is_dir():
                    self.send_json([entry(p) for p in sorted(below.iterdir())])
                else:
                    self.missing("EntryNotFound")
            elif path.startswith(files):
                file = folder / path.removeprefix(files)
                self.file(file.read_bytes()) if file.is_file() else self.missing("EntryNotFound")
            else:
                self.missing("RevisionNotFound" if name in path else "RepoNotFound")

        def file(self, data):
            headers = {"ETag": '"0"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
            if (span := self.headers.get("Range")) is None:
                self.answer(data, 200, headers)
                return
            first, last = span.removeprefix("bytes=").split("-")
            end = min(int(last) + 1 if last else len(data), len(data))
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(data)}"
            self.answer(data[int(first) : end], 206, headers)

        def missing(self, what):
            self.answer(b"{}", 404, {"X-Error-Code": what})

        def send_json(self, content):
            self.answer(json.dumps(content).encode(), 200, {})

        def answer(self, data, code, headers):
            self.send_response(code)
            for key, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
