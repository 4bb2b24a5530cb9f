"""Fetches a file from an address: whole, of the right digest, or not at all."""

import hashlib
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from moelaws.files.atomic import replacing
from moelaws.spec.errors import UserError, quoted, without_password
from moelaws.spec.from_disk import LARGEST, refuse_large

TIMEOUT = 30  # seconds without an answer or a further byte
_PIECE = 2**16  # bytes read at once
Progress = Callable[[int, int | None], None]  # takes the bytes so far and, if known, all bytes


class _Redirects(HTTPRedirectHandler):
    """Follows a server to other addresses of the web alone; urllib would go to ftp:// too."""

    def redirect_request(self, *request: Any) -> Request | None:
        _check(request[-1])
        return super().redirect_request(*request)


def is_address(text: str) -> bool:
    """Tells an address of the web from a path."""
    return text.lower().startswith(("http://", "https://"))


def _check(url: str) -> None:
    if not is_address(url):
        shown = quoted(without_password(url), 200)
        raise ValueError(f"{shown} does not begin with http:// or https://")
    if "@" in urlsplit(url).netloc:
        raise ValueError(
            "the address holds a password; get the file by other means, and give its path"
        )


def download(url: str, path: Path, sha256: str, progress: Progress) -> None:
    """Writes what is at ``url`` (http or https) to ``path``, atomically.

    A UserError says on one line what went wrong. Any digest is right if ``sha256`` is empty.
    """
    digest = hashlib.sha256()
    with replacing(path) as temporary, temporary.open("wb") as file:
        for piece in _pieces(url, progress):
            digest.update(piece)
            file.write(piece)
        if sha256 not in ("", digest.hexdigest()):
            raise UserError(
                f"{url}: the SHA-256 of what is there is {digest.hexdigest()}, and that of "
                f"{path.name} is {sha256}"
            )


def _pieces(url: str, progress: Progress) -> Iterator[bytes]:
    shown = without_password(url)
    try:
        _check(url)
        request = Request(url, headers={"User-Agent": "moelaws"})
        with build_opener(_Redirects).open(request, timeout=TIMEOUT) as answer:
            # If the server names no length, the file ends where the server closes.
            size, done = answer.length, 0
            refuse_large(size or 0, shown)
            while piece := answer.read(min(_PIECE, LARGEST + 1)):
                done += len(piece)
                refuse_large(done, shown)
                progress(done, size)
                yield piece
            if size is not None and done < size:
                raise OSError(f"the transfer was cut after {done:,} of {size:,} bytes")
    except (OSError, HTTPException, ValueError) as error:
        raise UserError(f"{quoted(shown, 200)} cannot be fetched: {_reason(error)}") from None


def _reason(error: Any) -> str:
    if isinstance(error, HTTPError):
        return f"the server answers {error.code} {error.reason}"
    if isinstance(error, URLError):
        error = error.reason
    text = error.strerror if isinstance(error, OSError) and error.strerror else error
    return str(text) or type(error).__name__
