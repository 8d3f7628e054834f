"""The dialect of Kafka's tools."""

import pytest

from kafkapy.cli.framework.exit_status import UsageError
from kafkapy.cli.framework.jopt import OptionSpec, normalise

SPECS = [
    OptionSpec(("help", "h"), takes_value=False),
    OptionSpec(("topic",), takes_value=True),
    OptionSpec(("partitions",), takes_value=True, integer=True),
    OptionSpec(("config",), takes_value=True, repeatable=True),
    OptionSpec(("props",), takes_value=True, repeatable=True, many=True),
    OptionSpec(("codec",), takes_value=True, optional_value="gzip"),
    OptionSpec(("entity-name",), takes_value=True, repeatable=True),
    OptionSpec(("entity-default",), takes_value=False, stands_for="entity-name"),
]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--topic", "t"], ["--topic=t"]),
        (["--topic=t"], ["--topic=t"]),
        (["-topic", "t"], ["--topic=t"]),
        (["-topic=t"], ["--topic=t"]),
        (["--topic", "--odd"], ["--topic=--odd"]),
        (["--topic="], ["--topic="]),
        (["--topic=a=b"], ["--topic=a=b"]),
        (["--partitions", "-5"], ["--partitions=-5"]),
        (["--config", "a", "--config", "b"], ["--config=a", "--config=b"]),
        (
            ["--props", "a=1", "b=-1", "--topic", "t", "junk"],
            ["--props=a=1", "--props=b=-1", "--topic=t"],
        ),
        (["--codec", "--topic", "t"], ["--codec=gzip", "--topic=t"]),
        (["--codec"], ["--codec=gzip"]),
        (["--codec", "lz4"], ["--codec=lz4"]),
        (["--codec", "-1"], ["--codec=-1"]),
        (["-h"], ["--help"]),
        (["junk", "--topic", "t", "more"], ["--topic=t"]),
        (["--", "--topic", "t"], []),
        (
            ["--entity-name", "u", "--entity-default", "--entity-name", "v"],
            ["--entity-name=u", "--entity-name=", "--entity-name=v"],
        ),
    ],
)
def test_words(words: list[str], expected: list[str]) -> None:
    assert normalise(words, SPECS) == expected


def test_operands_are_kept_where_they_mean_something() -> None:
    words = ["start", "--topic", "t", "file", "--", "--x"]
    assert normalise(words, SPECS, operands=True) == ["start", "--topic=t", "file", "--", "--x"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nope"], "nope is not a recognized option"),
        (["-x=1"], "x is not a recognized option"),
        (["--topic"], "Option topic requires an argument"),
        (["--partitions", "x"], "Cannot parse argument 'x' of option partitions"),
        (["--partitions="], "Cannot parse argument '' of option partitions"),
        (
            ["--topic", "a", "--topic", "b"],
            "Found multiple arguments for option topic, but you asked for only one",
        ),
    ],
)
def test_errors_are_jopts(words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        normalise(words, SPECS)
    assert str(caught.value) == said


def test_the_words_of_another_command_are_left_alone() -> None:
    words = ["--topic", "t", "host:1", "ls", "-s", "--odd"]
    assert normalise(words, SPECS, operands=True, verbatim=True) == [
        "--topic=t",
        "--",
        "host:1",
        "ls",
        "-s",
        "--odd",
    ]


def test_what_is_not_served_says_why() -> None:
    refused = {"bootstrap-controller": "there are brokers", "C": "there are brokers"}
    for word in ("--bootstrap-controller", "-C", "--bootstrap-controller=h:1"):
        with pytest.raises(UsageError) as failed:
            normalise([word, "h:1"], SPECS, refused=refused)
        assert str(failed.value).endswith(" is not served: there are brokers")
