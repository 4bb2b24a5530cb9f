"""A server on this machine that takes what `wandb sync` sends, and keeps it."""

import gzip
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Received:
    """What came: variables of the last upsert of the run, rows of its history, files."""

    def __init__(self):
        self.run, self.rows, self.files = {}, {}, {}

    def answer(self, path, body, address):
        if path == "/graphql":
            return {"data": self._graphql(json.loads(body), address)}
        if path.endswith("/file_stream"):
            history = json.loads(body).get("files", {}).get("wandb-history.jsonl")
            if history:
                rows = enumerate(history["content"], history["offset"])
                self.rows |= {number: json.loads(row) for number, row in rows}
        elif path.startswith("/upload/"):
            self.files[path.removeprefix("/upload/")] = body
        return {}

    def _graphql(self, request, address):
        query, variables = request["query"], request["variables"]
        if "upsertBucket" in query:
            self.run |= {name: value for name, value in variables.items() if value is not None}
            entity = {"id": "e", "name": "me"}
            project = {"id": "p", "name": variables["project"], "entity": entity}
            bucket = {"id": "r", "name": variables["name"], "displayName": "", "project": project}
            return {"upsertBucket": {"bucket": bucket, "inserted": True}}
        if "createRunFiles" in query:
            files = [{"name": n, "uploadUrl": f"{address}/upload/{n}"} for n in variables["files"]]
            return {"createRunFiles": {"runID": "r", "uploadHeaders": [], "files": files}}
        return {}


@contextmanager
def server():
    """Yields its address and what it received."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            answer = json.dumps(received.answer(self.path, body, address)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_PUT = do_POST

        def log_message(self, *words):
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{serving.server_port}"
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    try:
        yield address, received
    finally:
        serving.shutdown()
