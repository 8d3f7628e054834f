"""Files that must outlive the command that creates them, because Spark reads them later."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path


def cache_dir() -> Path:
    """The directory of kept files."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kafkapy"


def cached_file(
    cache_dir: Path, name: str, suffix: str, content: bytes, *, executable: bool = False
) -> Path:
    """The file `<name>-<digest of its content><suffix>` in `cache_dir`, created if needed.

    Raises:
        OSError: the file cannot be created.
    """
    digest = hashlib.sha256(content).hexdigest()[:16]
    target = cache_dir / f"{name}-{digest}{suffix}"
    if not target.exists() or target.read_bytes() != content:  # a power cut may leave it empty
        cache_dir.mkdir(parents=True, exist_ok=True)
        # A name of its own: another command may be making the same file.
        fd, name = tempfile.mkstemp(".part", f"{target.name}.", cache_dir)
        partial = Path(name)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(content)
            partial.chmod(0o755 if executable else 0o644)
            partial.replace(target)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
    return target
