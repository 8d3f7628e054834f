"""Topic ids: 16 bytes on the wire and on disk, 22 letters for people."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ConfigError
from kafkapy.common.uuid import ZERO_UUID, Uuid
from tests.harness.cores.ports import SeededRandom


class Given:
    """Chance that says what it is told, one answer after the other."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)

    def below(self, n: int) -> int:
        return 0

    def bytes(self, n: int) -> bytes:
        return self._answers.pop(0)


def test_the_text_is_base64url_without_padding() -> None:
    raw = Uuid(bytes.fromhex("fbffbf00112233445566778899aabbcc"))
    assert str(raw) == "-_-_ABEiM0RVZneImaq7zA"
    assert str(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert repr(ZERO_UUID) == "Uuid('AAAAAAAAAAAAAAAAAAAAAA')"


@given(st.binary(min_size=16, max_size=16))
def test_text_reads_back(raw: bytes) -> None:
    made = Uuid(raw)
    assert Uuid.parse(str(made)) == made == raw
    assert made.is_zero == (raw == bytes(16))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAA!",
        "AAAAAAAAAAA AAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAA==",
        "++++++++++++++++++++++",
        "AAAAAAAAAAAAAAAAAAAAAé",
    ],
)
def test_other_text_is_refused_and_named(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Uuid.parse(text)
    assert f"'{text}'" in str(refused.value)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_it_has_16_bytes(size: int) -> None:
    with pytest.raises(ValueError, match=str(size)):
        Uuid(bytes(size))


def test_random_ids_are_version_4() -> None:
    random = SeededRandom()
    for _ in range(50):
        made = uuid.UUID(bytes=bytes(Uuid.random(random)))
        assert (made.version, made.variant) == (4, uuid.RFC_4122)


def test_no_random_id_looks_like_a_flag_of_a_command() -> None:
    dash = b"\xfb" + bytes(15)
    assert str(Uuid.random(Given(dash, bytes(16)))).startswith("AAAAAAAAQ")
