"""The text of `share-groups`, character for character that of Kafka 4.3."""

from __future__ import annotations

from kafkapy.admin.groups import GroupListing
from kafkapy.admin.share_groups import ShareGroupDescription, ShareMember, ShareOffset
from kafkapy.cli.framework.output import Report
from kafkapy.cli.views.share_groups import (
    deleted_groups_report,
    deleted_offsets_report,
    list_report,
    members_report,
    offsets_report,
    reset_report,
    states_report,
)
from kafkapy.client.metadata import Broker
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MEMBER = ShareMember("LdVEMyI4T9q5EieO13ThkQ", "cid", "/127.0.0.1", 6, (T0, T1))
GROUP = ShareGroupDescription("g1", "Stable", Broker(1, "127.0.0.1", 29392), 6, 6, (MEMBER,))


def text(report: Report) -> str:
    return "\n".join(report.text)


def test_list() -> None:
    groups = [GroupListing("g1", "share", "Empty", "Share")]
    assert text(list_report(groups, states=False)) == "g1"
    assert text(list_report(groups, states=True)) == (
        "GROUP           STATE\ng1              Empty"
    )


def test_offsets() -> None:
    found = {"g1": {T0: ShareOffset(0, 5, 15), T1: ShareOffset(0, None, None)}}
    assert text(offsets_report(found, verbose=False)) == (
        "\n"
        "GROUP           TOPIC           PARTITION  START-OFFSET  LAG\n"
        "g1              t               0          5             15\n"
        "g1              t               1          -             -"
    )
    assert text(offsets_report(found, verbose=True)) == (
        "\n"
        "GROUP           TOPIC           PARTITION  LEADER-EPOCH  START-OFFSET  LAG\n"
        "g1              t               0          0             5             15\n"
        "g1              t               1          -             -             -"
    )


def test_members() -> None:
    assert text(members_report([GROUP], verbose=False)) == (
        "\n"
        "GROUP           CONSUMER-ID            HOST            CLIENT-ID       #PARTITIONS  "
        "ASSIGNMENT\n"
        "g1              LdVEMyI4T9q5EieO13ThkQ /127.0.0.1      cid             2            t:0,1"
    )
    assert text(members_report([GROUP], verbose=True)).endswith(
        "#PARTITIONS  MEMBER-EPOCH  ASSIGNMENT\n"
        "g1              LdVEMyI4T9q5EieO13ThkQ /127.0.0.1      cid             2            6"
        "             t:0,1"
    )


def test_states() -> None:
    assert text(states_report([GROUP], verbose=False)) == (
        "\n"
        "GROUP           COORDINATOR (ID)          STATE           #MEMBERS\n"
        "g1              127.0.0.1:29392  (1)      Stable          1"
    )
    assert text(states_report([GROUP], verbose=True)) == (
        "\n"
        "GROUP           COORDINATOR (ID)          STATE           GROUP-EPOCH  ASSIGNMENT-EPOCH  "
        "#MEMBERS\n"
        "g1              127.0.0.1:29392  (1)      Stable          6            6                 1"
    )


def test_changes() -> None:
    error = ApiError(ErrorCode.NON_EMPTY_GROUP, "Group g1 is not empty.")
    assert text(reset_report("g1", {T0: 0}, executed=True)) == (
        "\n"
        "GROUP           TOPIC           PARTITION  NEW-OFFSET\n"
        "g1              t               0          0"
    )
    assert text(deleted_offsets_report({"t": error}, error.message)) == (
        "\nError: Group g1 is not empty.\n\n"
        "TOPIC           STATUS\n"
        "t               Error: Group g1 is not empty."
    )
    assert text(deleted_offsets_report({"t": None}, None)).endswith("t               Successful")
    assert text(deleted_groups_report({"g1": None, "g2": None})) == (
        "Deletion of requested share groups ('g1', 'g2') was successful."
    )
    assert text(deleted_groups_report({"g1": error, "g2": None})) == (
        "\nError: Deletion of some share groups failed:\n"
        "* Group 'g1' could not be deleted due to: Group g1 is not empty.\n\n"
        "These share groups were deleted successfully: 'g2'"
    )
