"""Regular expressions that Python refuses, and its exceptions."""

import re

import pytest

from kafkapy.common.patterns import PATTERN_ERRORS


@pytest.mark.parametrize("text", ["(", "a{99999999999}", "(" * 5000 + ")" * 5000])
def test_every_refusal_is_known(text: str) -> None:
    with pytest.raises(PATTERN_ERRORS):
        re.compile(text)
