"""What this machine cannot check is not collected, and said at the end of the run
(`support/unchecked.py`)."""

from __future__ import annotations

from scripts import _peers

collect_ignore = [] if _peers.has_kerberos() else ["test_gssapi.py"]
