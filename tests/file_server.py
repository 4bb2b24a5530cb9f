"""A server of files on this machine, which can also fail as servers of the world do."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[SimpleNamespace]:
    """A server with its ``address`` and the paths that were ``asked`` for.

    Below /cut/ it sends half of a file, below /silent/ it never answers, and below /huge/ it
    announces 2 TB. Below /endless/ it does not say how long the file is, and from /ftp/ it sends on
    to another kind of server.
    """
    state = SimpleNamespace(asked=[], stopped=threading.Event())

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            state.asked.append(self.path)
            _, *kinds, name = self.path.split("/")
            data = files.get(name)
            if "silent" in kinds:
                state.stopped.wait()
                return
            if "ftp" in kinds:
                self.send_response(302)
                self.send_header("Location", f"ftp://{name}")
                self.end_headers()
                return
            if data is None:
                self.send_error(404)
                return
            self.send_response(200)
            if "endless" not in kinds:
                size = 2 * 10**12 if "huge" in kinds else len(data)
                self.send_header("Content-Length", str(size))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if "cut" in kinds else data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield state
    finally:
        state.stopped.set()
        server.shutdown()
        server.server_close()
