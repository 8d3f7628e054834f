"""The text of `consumer-groups`, character for character that of Kafka 3.7."""

from kafkapy.admin.groups import GroupDescription, GroupListing
from kafkapy.cli.views import consumer_groups as views
from kafkapy.client.metadata import Broker
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.groups.group_rows import GroupOffsetRow, MemberRow

T0, T1, T10 = (TopicPartition("foo", index) for index in (0, 1, 10))


def text(report: views.Report) -> str:
    return "\n".join(report.text)


def test_offsets() -> None:
    rows = [
        GroupOffsetRow(T0, 2, 5, "consumer-1-0123456789", "/127.0.0.1", "c"),
        GroupOffsetRow(T1, None, 3),
    ]
    assert text(views.offsets_report({"g": rows, "empty": []})) == (
        "\n"
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG            "
        " CONSUMER-ID           HOST            CLIENT-ID\n"
        "g               foo             0          2               5               3              "
        " consumer-1-0123456789 /127.0.0.1      c\n"
        "g               foo             1          -               3               -              "
        " -                     -               -"
    )


def test_members() -> None:
    rows = [MemberRow("m-1", None, "/h", "c", (T10, T0)), MemberRow("m-2", None, "/h", "c", ())]
    assert text(views.members_report({"g": rows, "none": []}, verbose=True)) == (
        "\n"
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     "
        "ASSIGNMENT\n"
        "g               m-1             /h              c               2               "
        "foo(0,10)\n"
        "g               m-2             /h              c               0               -"
    )
    static = [MemberRow("m-1", "pod-7", "/h", "c", ())]
    assert text(views.members_report({"g": static}, verbose=False)).splitlines()[1:] == [
        "GROUP           CONSUMER-ID     GROUP-INSTANCE-ID HOST            CLIENT-ID       "
        "#PARTITIONS    ",
        "g               m-1             pod-7             /h              c               "
        "0              ",
    ]


def test_states() -> None:
    group = GroupDescription("g", "Stable", "Classic", "range", Broker(0, "host", 9092), ())
    assert text(views.states_report([group])) == (
        "\n"
        "GROUP                     COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE          "
        " #MEMBERS\n"
        "g                         host:9092 (0)             range                Stable         "
        " 0"
    )


def test_members_and_states_of_the_consumer_protocol_have_epochs() -> None:
    rows = [
        MemberRow("m-1", None, "/h", "c", (T0, T1), 4, 5, (T0,)),
        MemberRow("m-2", None, "/h", "c", (), 5, 5, (T1,)),
    ]
    assert text(views.members_report({"g": rows}, verbose=True)) == (
        "\n"
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     "
        "CURRENT-EPOCH   CURRENT-ASSIGNMENT   TARGET-EPOCH    TARGET-ASSIGNMENT   \n"
        "g               m-1             /h              c               2               "
        "4               foo:0,1              5               foo:0               \n"
        "g               m-2             /h              c               0               "
        "5               -                    5               foo:1               "
    )
    coordinator = Broker(0, "host", 9092)
    group = GroupDescription("g", "Stable", "Consumer", "range", coordinator, (), 5, 4)
    assert text(views.states_report([group], verbose=True)) == (
        "\n"
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                "
        "GROUP-EPOCH     TARGET-ASSIGNMENT-EPOCH   #MEMBERS\n"
        "g               host:9092  (0)            range                Stable               "
        "5               4                         0"
    )
    assert "EPOCH" not in text(views.states_report([group]))
    (shown,) = views.states_report([group]).data
    assert (shown["group_epoch"], shown["target_assignment_epoch"]) == (5, 4)
    one, _ = views.members_report({"g": rows}, verbose=False).data
    assert (one["epoch"], one["target_epoch"]) == (4, 5)
    assert one["target_assignment"] == [{"topic": "foo", "partition": 0}]


def test_lists() -> None:
    listed = [GroupListing("g", "consumer", "Stable", "Classic")]
    assert text(views.list_report(listed, states=False, types=False)) == "g"
    assert text(views.list_report(listed, states=True, types=True)) == (
        f"{'GROUP':25} {'TYPE':20} {'STATE':20}\n{'g':25} {'Classic':20} {'Stable':20}"
    )
    assert text(views.list_report([], states=False, types=False)) == ""


def test_resets() -> None:
    assert text(views.reset_report({"g": {T0: 7}}, executed=True)) == (
        "\n"
        f"{'GROUP':30} {'TOPIC':30} {'PARTITION':10} {'NEW-OFFSET':15}\n"
        f"{'g':30} {'foo':30} {'0':10} {'7':15}"
    )


def test_deleted_offsets_come_in_the_order_of_their_text() -> None:
    gone = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Topic x does not exist")
    found = {TopicPartition("x", -1): gone, T10: None, T1: None}
    assert text(views.deleted_offsets_report("Summary", found)).splitlines() == [
        "Summary",
        "",
        f"{'TOPIC':30} {'PARTITION':15} {'STATUS':15}",
        f"{'foo':30} {'1':15} {'Successful':15}",
        f"{'foo':30} {'10':15} {'Successful':15}",
        f"{'x':30} {'Not Provided':15} Error: Topic x does not exist",
    ]


def test_deleted_groups() -> None:
    busy = ApiError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
    done = text(views.deleted_groups_report({"a": None, "b": None}))
    assert done == "Deletion of requested consumer groups ('a', 'b') was successful."
    assert text(views.deleted_groups_report({"a": busy})) == (
        "\nError: Deletion of some consumer groups failed:\n"
        "* Group 'a' could not be deleted due to: The group is not empty."
    )
