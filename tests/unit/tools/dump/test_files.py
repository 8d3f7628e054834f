"""Names of files."""

from __future__ import annotations

import pytest

from kafkapy.tools.dump.files import BrokenFile, base_offset_of


def test_base_offsets_are_in_names() -> None:
    assert base_offset_of("/x.y/00000000000000000042.index.deleted") == 42
    for name in ("orders.log", ".log", "-1.log"):
        with pytest.raises(BrokenFile, match="does not begin with a base offset"):
            base_offset_of(name)
