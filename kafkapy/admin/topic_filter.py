"""`--topic` as a filter (`TopicFilter.IncludeList`): a regular expression of whole names."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import Final

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import INTERNAL_TOPICS
from kafkapy.security.java_patterns import java_pattern

_TOKEN: Final = r"\\.|&&|."


class TopicFilter:
    """A filter of topic names. Commas mean "or"; spaces and outer quotes are dropped.

    None matches all topics. An empty text matches no topic: `--delete --topic "$UNSET"` must not
    delete everything.
    """

    def __init__(self, text: str | None, exclude_internal: bool = False) -> None:
        """Compile the regular expression.

        Raises:
            ConfigError: from `name_pattern`.
        """
        text = ".*" if text is None else text
        self.text = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
        self._exclude_internal = exclude_internal
        self._pattern = name_pattern(self.text)

    def allows(self, topic: str) -> bool:
        """Whether the whole name matches."""
        if self._exclude_internal and topic in INTERNAL_TOPICS:
            return False
        return self._pattern.fullmatch(topic) is not None

    def choose(self, topics: Iterable[str]) -> list[str]:
        """The names that match, sorted."""
        return sorted(topic for topic in topics if self.allows(topic))


def name_pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression of names in Java's syntax.

    Raises:
        ConfigError: the text is not a regular expression, or Python would read it in another way
            than Java.
    """
    if _has_set_operation(text):
        raise ConfigError(f"{text} is not served: it has && or a set [...] within a set")
    try:
        with warnings.catch_warnings():
            # Python warns about `[a||b]`, which a later version may read as a set operation.
            warnings.simplefilter("ignore", FutureWarning)
            return java_pattern(text, "name")
    except ConfigError:
        raise ConfigError(f"{text} is an invalid regex.") from None


def _has_set_operation(text: str) -> bool:
    """Whether a set contains an operator or another set, which Python would read as characters."""
    is_inside = False
    for token in re.findall(_TOKEN, text, re.DOTALL):
        if is_inside and token in ("[", "&&"):
            return True
        is_inside = token == "[" or (is_inside and token != "]")
    return False
