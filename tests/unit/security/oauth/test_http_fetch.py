"""The way to the adapter: it is imported when something is fetched."""

from __future__ import annotations

from pathlib import Path

from kafkapy.security.oauth.http_fetch import fetch
from kafkapy.security.oauth.http_request import HttpRequest


def test_what_fetches_is_imported_late(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes(b"content")
    assert fetch(HttpRequest(file.as_uri())) == b"content"
