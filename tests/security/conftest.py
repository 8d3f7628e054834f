"""What this machine cannot check is not collected, and said at the end of the run
(`support/unchecked.py`)."""

from __future__ import annotations

from dev import fetch_peers

collect_ignore = [] if fetch_peers.has_kerberos() else ["test_gssapi.py"]
