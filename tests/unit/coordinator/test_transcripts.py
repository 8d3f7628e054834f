"""Groups of several members, told as transcripts: `transcripts/*.txt`.

To record them anew: `python -m tests.unit.coordinator.test_transcripts`, then read the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.cores import group_transcript

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    written = path.read_text()
    assert group_transcript.run(written) == written


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 9


if __name__ == "__main__":
    for transcript in TRANSCRIPTS:
        transcript.write_text(group_transcript.run(transcript.read_text()))
