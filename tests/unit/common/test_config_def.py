"""A configuration value is read as Kafka reads it, and refused in Kafka's words."""

from __future__ import annotations

import pytest

from kafkapy.common.config_def import (
    ConfigDef,
    ConfigKey,
    ConfigSource,
    ConfigType,
    ConfigValue,
    at_least,
    between,
    format_value,
    list_of,
    matching,
    one_of,
    parse_value,
)
from kafkapy.common.errors import ConfigError


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, " True ", True),
        (ConfigType.BOOLEAN, "FALSE", False),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.INT, "+5", 5),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.LONG, " 9223372036854775807 ", 2**63 - 1),
        (ConfigType.DOUBLE, "0.5", 0.5),
        (ConfigType.LIST, "a, b ,c", ["a", "b", "c"]),
        (ConfigType.LIST, "", []),
        (ConfigType.STRING, " a b ", "a b"),
        (ConfigType.PASSWORD, "secret", "secret"),
        (ConfigType.INT, None, None),
    ],
)
def test_values(kind: ConfigType, text: str | None, value: ConfigValue) -> None:
    assert parse_value("k", kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (ConfigType.BOOLEAN, "yes", "Expected value to be either true or false"),
        (ConfigType.INT, "2147483648", "Not a number of type INT"),
        (ConfigType.INT, "1e3", "Not a number of type INT"),
        (ConfigType.INT, "1_000", "Not a number of type INT"),
        (ConfigType.INT, "", "Not a number of type INT"),
        (ConfigType.SHORT, "32768", "Not a number of type SHORT"),
        (ConfigType.LONG, "9223372036854775808", "Not a number of type LONG"),
        (ConfigType.LONG, "9" * 5000, "Not a number of type LONG"),
        (ConfigType.DOUBLE, "half", "Not a number of type DOUBLE"),
    ],
)
def test_refusals_name_the_value_and_the_key(kind: ConfigType, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_value("some.key", kind, text)
    assert str(refused.value).startswith(f"Invalid value {text} for configuration some.key: {said}")


@pytest.mark.parametrize(
    ("check", "documented", "good", "bad", "said"),
    [
        (at_least(1), "[1,...]", 1, 0, "Value must be at least 1"),
        (between(-1, 9), "[-1,...,9]", 9, 10, "Value must be no more than 9"),
        (between(-1, 9), "[-1,...,9]", -1, -2, "Value must be at least -1"),
        (one_of("a", "b"), "[a, b]", "b", "B", "String must be one of: a, b"),
        (
            one_of("a", "b", any_case=True),
            "[a, b]",
            "B",
            "c",
            r"String must be one of \(case insensitive\): a, b",
        ),
        (list_of("a", "b"), "[a, b]", ["b", "a"], ["a", "c"], "String must be one of: a, b"),
        (matching("[0-9]+", "numbers"), "numbers", ["1", "22"], ["1", "2x"], "k must be numbers"),
    ],
)
def test_validators(
    check: tuple[object, str],
    documented: str,
    good: ConfigValue,
    bad: ConfigValue,
    said: str,
) -> None:
    validator, allowed = check
    assert allowed == documented
    validator("k", good)  # type: ignore[operator]
    with pytest.raises(ConfigError, match=f"^Invalid value .* for configuration k: {said}$"):
        validator("k", bad)  # type: ignore[operator]


def test_no_value_is_neither_too_low_nor_too_high() -> None:
    for validator, _ in (at_least(1), between(1, 2)):
        validator("k", None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (["a", "b"], "a,b"),
        ([], ""),
        ("x", "x"),
        (0.5, "0.5"),
        (0.001, "0.001"),
        (0.0005, "5.0E-4"),
        (1e-5, "1.0E-5"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (-2.5e10, "-2.5E10"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_describe_configs_shows_values_as_java_prints_them(
    value: ConfigValue, text: str | None
) -> None:
    assert format_value(value) == text


TABLE = ConfigDef(
    (
        ConfigKey("a", ConfigType.INT, 1, at_least(0)[0]),
        ConfigKey("b", ConfigType.LIST, ["x"]),
        ConfigKey("c", ConfigType.PASSWORD),
    )
)


def test_what_is_not_given_has_its_default() -> None:
    assert TABLE.parse_all({"b": "y,z", "other": "?"}) == {"a": 1, "b": ["y", "z"], "c": None}


def test_a_table_validates_and_knows_its_keys() -> None:
    with pytest.raises(ConfigError, match="for configuration a: Value must be at least 0"):
        TABLE.parse_all({"a": "-1"})
    with pytest.raises(ConfigError, match="Unknown configuration 'd'"):
        TABLE.parse("d", "1")


def test_only_passwords_are_hidden() -> None:
    assert [key.sensitive for key in TABLE.keys.values()] == [False, False, True]


def test_ids_on_the_wire() -> None:
    """DescribeConfigs' ConfigSource and ConfigType (`DescribeConfigsResponse`)."""
    assert [source.name for source in sorted(ConfigSource)] == [
        "UNKNOWN",
        "DYNAMIC_TOPIC_CONFIG",
        "DYNAMIC_BROKER_CONFIG",
        "DYNAMIC_DEFAULT_BROKER_CONFIG",
        "STATIC_BROKER_CONFIG",
        "DEFAULT_CONFIG",
        "DYNAMIC_BROKER_LOGGER_CONFIG",
        "DYNAMIC_CLIENT_METRICS_CONFIG",
        "DYNAMIC_GROUP_CONFIG",
    ]
    assert [(kind.name, int(kind)) for kind in ConfigType] == [
        ("BOOLEAN", 1),
        ("STRING", 2),
        ("INT", 3),
        ("SHORT", 4),
        ("LONG", 5),
        ("DOUBLE", 6),
        ("LIST", 7),
        ("CLASS", 8),
        ("PASSWORD", 9),
    ]
