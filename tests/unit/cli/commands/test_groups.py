"""`kafkapy groups`: which groups are listed, and Kafka's columns."""

from __future__ import annotations

import pytest

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

GROUPS = {
    "app": ("consumer", "Consumer"),
    "connect": ("connect", "Classic"),
    "old": ("consumer", "Classic"),
    "queue": ("share", "Share"),
    "simple": ("", "Classic"),
    "topology": ("streams", "Streams"),
}


def listed(*words: str) -> Outcome:
    found = [
        ListedGroup(group_id=name, protocol_type=protocol, group_type=kind, group_state="Empty")
        for name, (protocol, kind) in GROUPS.items()
    ]
    answer = ListGroupsResponse(groups=found)
    cluster = ScriptedCluster({ApiKey.METADATA: metadata(), ApiKey.LIST_GROUPS: answer})
    return kafkapy("groups", "--bootstrap-server", "b:1", *words, cluster=cluster)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ((), "app connect old queue simple topology"),
        (("--consumer",), "app old simple"),
        (("--share",), "queue"),
        (("--streams",), "topology"),
        (("--group-type", "classic"), "connect old simple"),
        (("--protocol", "consumer"), "app old"),
        (("--group-type", "Classic", "--protocol", "consumer"), "old"),
    ],
)
def test_the_groups_that_are_asked_for(words: tuple[str, ...], names: str) -> None:
    _, *rows = listed("--list", *words).stdout.splitlines()
    assert [row.split()[0] for row in rows] == names.split()


def test_columns() -> None:
    """Those of Kafka 4.3's tool."""
    header, row = listed("--list", "--share").stdout.splitlines()
    assert header == "GROUP                TYPE                 PROTOCOL            "
    assert row == "queue                Share                share               "
    assert listed("--list", "--share", "--output", "json").data == [
        {"group": "queue", "type": "Share", "state": "Empty", "protocol_type": "share"}
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Command must include exactly one action: --list."),
        (("--list", "--group-type", "foo"), "--group-type must be a valid group type."),
        (
            ("--list", "--share", "--consumer"),
            'Option "[consumer]" can\'t be used with option "[share]"',
        ),
    ],
)
def test_wrong_words(words: tuple[str, ...], said: str) -> None:
    done = listed(*words)
    assert done.stderr.startswith(said)
    assert (done.stdout, done.status) == ("", 1)
