"""CRC-32C, by the crc32c package.

Only its compiled module is loaded. The package's own imports (importlib.metadata for its version,
argparse for a command line) take longer than dumping a segment.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any, Final


def _load() -> Callable[..., int]:
    package = find_spec("crc32c")
    search_path = None if package is None else package.submodule_search_locations
    spec = PathFinder.find_spec("crc32c._crc32c", search_path)
    if spec is None or spec.loader is None:
        # Another version of the package, or none: import it, so that its error is shown.
        module: Any = importlib.import_module("crc32c")
    else:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    found: Callable[..., int] = module.crc32c
    return found


crc32c: Final = _load()
"""`crc32c(data, seed=0)`: the checksum of data. With the checksum of earlier bytes as `seed`, it is
that of these bytes and data."""
