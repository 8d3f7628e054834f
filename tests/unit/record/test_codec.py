"""Codecs by the names that clients and topics give them."""

from __future__ import annotations

import pytest

from kafkapy.record.codec import Codec, codec_by_name, codec_of_topic


def test_names() -> None:
    assert [codec.label for codec in Codec] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert codec_by_name("GZIP") is codec_by_name("gzip") is Codec.GZIP
    assert codec_of_topic("producer") is None
    assert codec_of_topic("uncompressed") is Codec.NONE
    assert codec_of_topic("zstd") is Codec.ZSTD
    with pytest.raises(ValueError, match="brotli"):
        codec_by_name("brotli")
