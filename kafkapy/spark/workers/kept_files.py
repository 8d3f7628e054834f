"""Files that must outlive the command that creates them, because Spark reads them later."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def cache_dir() -> Path:
    """The directory of kept files."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kafkapy"


def kept_file(
    cache_dir: Path, name: str, suffix: str, content: bytes, *, executable: bool = False
) -> Path:
    """The file `<name>-<digest of its content><suffix>` in `cache_dir`, created if needed.

    Raises:
        OSError: the file cannot be created.
    """
    digest = hashlib.sha256(content).hexdigest()[:16]
    target = cache_dir / f"{name}-{digest}{suffix}"
    if not target.exists():
        cache_dir.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f"{target.name}.part")
        partial.write_bytes(content)
        if executable:
            partial.chmod(0o755)
        partial.replace(target)
    return target
