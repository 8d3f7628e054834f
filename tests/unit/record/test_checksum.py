"""The checksum of Kafka's batches, and what is not imported for it."""

from __future__ import annotations

import subprocess
import sys

from kafkapy.record.checksum import crc32c


def test_the_check_value_of_crc_32c() -> None:
    # The check value of CRC-32C (iSCSI) in every catalogue of CRCs.
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283
    assert crc32c(memoryview(bytearray(b"123456789"))) == 0xE3069283


def test_the_package_around_it_is_not_run() -> None:
    program = "import sys, kafkapy.record.checksum; print({'argparse', 'email'} & {*sys.modules})"
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
