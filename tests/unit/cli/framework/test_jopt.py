"""The dialect of Kafka's tools."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.cli.framework.exit_status import UsageError
from kafkapy.cli.framework.jopt import OptionSpec, parse, value_of
from kafkapy.cli.framework.options import OutputFormat

SPECS = [
    OptionSpec(("help", "h"), kind="bool"),
    OptionSpec(("topic",)),
    OptionSpec(("partitions",), kind="int", bits=32),
    OptionSpec(("throttle",), kind="int"),
    OptionSpec(("throughput",), kind="float"),
    OptionSpec(("config",), kind="list[str]"),
    OptionSpec(("props",), kind="list[str]", many=True),
    OptionSpec(("codec",), optional_value="gzip"),
    OptionSpec(("entity-name",), kind="list[str]"),
    OptionSpec(("entity-default",), kind="bool", stands_for="entity-name"),
    OptionSpec(("output",), kind="OutputFormat", choices=tuple(OutputFormat)),
]


def read(words: list[str]) -> dict[str, Any]:
    """The values of the options on a command line."""
    specs = {spec.names[0]: spec for spec in SPECS}
    return {
        name: value_of(specs[name], texts) for name, texts in parse(words, SPECS).values.items()
    }


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--topic", "t"], {"topic": "t"}),
        (["--topic=t"], {"topic": "t"}),
        (["-topic", "t"], {"topic": "t"}),
        (["-topic=t"], {"topic": "t"}),
        (["--topic", "--odd"], {"topic": "--odd"}),
        (["--topic="], {"topic": ""}),
        (["--topic=a=b"], {"topic": "a=b"}),
        (["--topic", "--"], {"topic": "--"}),
        (["--partitions", "-5"], {"partitions": -5}),
        (["--partitions=+5"], {"partitions": 5}),
        (["--throughput", "-1.5"], {"throughput": -1.5}),
        (["--output", "json"], {"output": OutputFormat.json}),
        (["--config", "a", "--config", "b"], {"config": ["a", "b"]}),
        (
            ["--props", "a=1", "b=-1", "--topic", "t", "junk"],
            {"props": ["a=1", "b=-1"], "topic": "t"},
        ),
        (["--codec", "--topic", "t"], {"codec": "gzip", "topic": "t"}),
        (["--codec"], {"codec": "gzip"}),
        (["--codec", "lz4"], {"codec": "lz4"}),
        (["--codec", "-1"], {"codec": "-1"}),
        (["-h"], {"help": True}),
        (["--help=x", "--help"], {"help": True}),
        (["junk", "--topic", "t", "more"], {"topic": "t"}),
        (["--", "--topic", "t"], {}),
        (
            ["--entity-name", "u", "--entity-default", "--entity-name", "v"],
            {"entity-name": ["u", "", "v"]},
        ),
    ],
)
def test_words(words: list[str], expected: dict[str, Any]) -> None:
    assert read(words) == expected


def test_other_words_are_operands() -> None:
    words = ["start", "--topic", "t", "file", "-", "", "-5", "--", "--x", "--"]
    assert parse(words, SPECS).operands == ["start", "file", "-", "", "-5", "--x", "--"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nope"], "nope is not a recognized option"),
        (["-x=1"], "x is not a recognized option"),
        (["--partitions", "x", "--nope"], "nope is not a recognized option"),
        (["--topic"], "Option topic requires an argument"),
        (["--partitions", "x"], "Cannot parse argument 'x' of option partitions"),
        (["--partitions="], "Cannot parse argument '' of option partitions"),
        (["--partitions", "1_0"], "Cannot parse argument '1_0' of option partitions"),
        (
            ["--partitions", "1", "--partitions", "x"],
            "Cannot parse argument 'x' of option partitions",
        ),
        (
            ["--partitions", "2147483648"],
            "Cannot parse argument '2147483648' of option partitions",
        ),
        (
            ["--throttle", "9223372036854775808"],
            "Cannot parse argument '9223372036854775808' of option throttle",
        ),
        (["--throughput", "fast"], "Cannot parse argument 'fast' of option throughput"),
        (
            ["--topic", "a", "--topic", "b"],
            "Found multiple arguments for option topic, but you asked for only one",
        ),
        (
            ["--output", "yaml"],
            "Invalid value for '--output': 'yaml' is not one of 'text', 'table', 'json'.",
        ),
    ],
)
def test_errors_are_jopts(words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(words)
    assert str(caught.value) == said


def test_the_words_of_another_command_are_left_alone() -> None:
    words = ["--topic", "t", "host:1", "ls", "-s", "--", "--odd"]
    found = parse(words, SPECS, verbatim=True)
    assert found.values == {"topic": ["t"]}
    assert found.operands == ["host:1", "ls", "-s", "--", "--odd"]


def test_what_is_not_served_says_why() -> None:
    refused = {"bootstrap-controller": "there are brokers", "C": "there are brokers"}
    for word in ("--bootstrap-controller", "-C", "--bootstrap-controller=h:1"):
        with pytest.raises(UsageError) as failed:
            parse([word, "h:1"], SPECS, refused=refused)
        assert str(failed.value).endswith(" is not served: there are brokers")


def test_options_of_another_program_go_with_its_words() -> None:
    words = ["--topic", "t", "--conf", "a=b", "-v", "--x=y", "--name", "--topic", "job", "--topic"]
    found = parse(words, SPECS, verbatim=True, foreign_flags={"-v"})
    assert found.values == {"topic": ["t"]}
    assert found.operands == words[2:]


def test_words_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(UsageError, match=r"The argument of option topic is not UTF-8: 'a\\udcff'"):
        read(["--topic", "a\udcff"])
    with pytest.raises(UsageError, match="The argument of option config is not UTF-8"):
        read(["--config", "a", "--config", "\udcff"])


@pytest.mark.parametrize("metavar", ["FILE", "DIR,..."])
def test_paths_may_have_any_bytes(metavar: str) -> None:
    assert value_of(OptionSpec(("files",), metavar=metavar), ["a\udcff"]) == "a\udcff"


ARGPARSE = [
    OptionSpec(("bootstrap-server", "b")),
    OptionSpec(("num-records",), kind="int"),
    OptionSpec(("producer-props",), kind="list[str]", many=True),
    OptionSpec(("producer.config",)),
    OptionSpec(("feature",), kind="list[str]"),
    OptionSpec(("help", "h"), kind="bool"),
]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--boot", "h:1", "--num=5"], {"bootstrap-server": ["h:1"], "num-records": ["5"]}),
        (["-bh:1"], {"bootstrap-server": ["h:1"]}),
        (["-b", "h:1", "-b", "h:2"], {"bootstrap-server": ["h:2"]}),
        (
            ["--producer-props", "a=1", "--producer-p", "b=1", "c=1"],
            {"producer-props": ["b=1", "c=1"]},
        ),
        (["--feature", "a", "--feat", "b"], {"feature": ["a", "b"]}),
        (["-h", "--he"], {"help": []}),
    ],
)
def test_tools_that_kafka_parses_with_argparse4j(
    words: list[str], expected: dict[str, list[str]]
) -> None:
    assert parse(words, ARGPARSE, as_argparse=True).values == expected
    with pytest.raises(UsageError):
        parse(["--boot", "h:1"], ARGPARSE)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (
            "--produce",
            "ambiguous option: --produce could match --producer-props, --producer.config",
        ),
        ("--x", "x is not a recognized option"),
        ("-x1", "x1 is not a recognized option"),
        ("-h1", "h1 is not a recognized option"),
    ],
)
def test_what_argparse4j_refuses(word: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        parse([word, "a"], ARGPARSE, as_argparse=True)
    assert str(error.value) == said
