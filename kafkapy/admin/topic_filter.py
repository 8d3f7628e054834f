"""`--topic` as a filter (`TopicFilter.IncludeList`): a regular expression of whole names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kafkapy.common.errors import ConfigError
from kafkapy.common.patterns import PATTERN_ERRORS
from kafkapy.common.topic_partition import INTERNAL_TOPICS


class TopicFilter:
    """Commas mean "or"; spaces and outer quotes are dropped. None matches all, an empty text none:
    `--delete --topic "$UNSET"` must not delete everything.
    """

    def __init__(self, text: str | None, exclude_internal: bool = False) -> None:
        """
        Raises:
            ConfigError: the text is not a regular expression.
        """
        text = ".*" if text is None else text
        self.text = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
        self._exclude_internal = exclude_internal
        try:
            self._pattern = re.compile(self.text)
        except PATTERN_ERRORS:
            raise ConfigError(f"{self.text} is an invalid regex.") from None

    def allows(self, topic: str) -> bool:
        """Whether the whole name matches."""
        if self._exclude_internal and topic in INTERNAL_TOPICS:
            return False
        return self._pattern.fullmatch(topic) is not None

    def choose(self, topics: Iterable[str]) -> list[str]:
        """The names that match, sorted."""
        return sorted(topic for topic in topics if self.allows(topic))
