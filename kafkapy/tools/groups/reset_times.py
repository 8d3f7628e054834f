"""Times of `consumer-groups --reset-offsets` as milliseconds since the epoch (`Utils`)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from kafkapy.common.errors import ConfigError

_DATETIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})(Z|[+-]\d\d(?::?\d\d)?)?")
# java.time.Duration: a day is 24 hours; each part may be signed; only seconds have fractions.
_DURATION: Final = re.compile(
    r"([+-]?)P(?:([+-]?\d+)D)?"
    r"(T(?:([+-]?\d+)H)?(?:([+-]?\d+)M)?(?:([+-]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE,
)


def parse_datetime(text: str) -> int:
    """`2024-01-31T23:59:59.999` with `Z`, `+01`, `+0100`, `+01:00`, or nothing, which is UTC.

    Raises:
        ConfigError: the text has another form, or the time does not exist.
    """
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"Invalid datetime '{text}': expected YYYY-MM-DDTHH:mm:SS.sss and a zone such as Z or"
            " +01:00 (UTC without one)"
        )
    try:
        moment = datetime.fromisoformat(match[1] + (match[2] or "Z"))
    except ValueError as error:
        raise ConfigError(f"Invalid datetime '{text}': {error}") from error
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def parse_duration(text: str) -> int:
    """`PnDTnHnMnS` in milliseconds; negative durations are allowed.

    Raises:
        ConfigError: it is not an ISO 8601 duration of days and less.
    """
    match = _DURATION.fullmatch(text)
    parts = match.group(2, 4, 5, 6) if match else ()
    if match is None or not any(parts) or match[3] in ("T", "t"):
        raise ConfigError(f"Invalid duration '{text}': expected PnDTnHnMnS, such as P7D or PT1H30M")
    days, hours, minutes, seconds = (float((p or "0").replace(",", ".")) for p in parts)
    try:
        total = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError as error:
        raise ConfigError(f"Invalid duration '{text}': {error}") from error
    milliseconds = total // timedelta(milliseconds=1)
    return -milliseconds if match[1] == "-" else milliseconds
