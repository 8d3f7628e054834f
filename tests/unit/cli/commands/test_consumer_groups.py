"""`kafkapy consumer-groups`: requests, statuses, what is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster
from tests.harness.scripted.scripted_groups import group_cluster


def groups(*words: str, cluster: ScriptedCluster | None = None, **more: Any) -> Outcome:
    chosen = cluster or group_cluster()
    return kafkapy("consumer-groups", "--bootstrap-server", "b:1", *words, cluster=chosen, **more)


RESET = ("--reset-offsets", "--group", "idle")


def test_list() -> None:
    assert groups("--list").stdout == "busy\nidle\n"
    header, *rows = groups("--list", "--state", "--type").stdout.splitlines()
    assert header.split() == ["GROUP", "TYPE", "STATE"]
    assert [row.split() for row in rows] == [
        ["busy", "Classic", "Stable"],
        ["idle", "Classic", "Empty"],
    ]
    cluster = group_cluster()
    groups("--list", "--state", "stable, EMPTY,", "--type", "classic", cluster=cluster)
    (asked,) = cluster.requests_of(ApiKey.LIST_GROUPS)
    assert (asked.states_filter, asked.types_filter) == (["Stable", "Empty"], ["Classic"])
    assert groups("--list", "--output", "json").data[0] == {
        "group": "busy",
        "type": "Classic",
        "state": "Stable",
        "protocol_type": "consumer",
    }


def test_a_regular_expression_is_that_of_brokers() -> None:
    """Without a broker. Java's and Python's expressions have more."""
    words = ("consumer-groups", "--validate-regex")
    done = kafkapy(*words, "orders-.*")
    assert (done.stdout, done.status) == ("The regular expression `orders-.*` is valid.\n", 0)
    wrong = kafkapy(*words, "a(?=b)")
    assert wrong.stdout.startswith("The regular expression `a(?=b)` is invalid: ")
    assert wrong.status == 0
    assert kafkapy(*words, "a(?=b)", "--strict").status == 1
    assert kafkapy(*words, "a", "--output", "json").data == [
        {"regex": "a", "is_valid": True, "reason": None}
    ]


def test_describe_says_what_stands_out() -> None:
    done = groups("--describe", "--group", "idle", "--group", "nobody")
    assert done.stderr == (
        "\nConsumer group 'idle' has no active members.\n"
        "Hint: kafkapy consumer-groups --list shows the groups;"
        " with --strict the exit status is 1\n"
    )
    assert done.stdout.startswith("\nError: Consumer group 'nobody' does not exist.\n\nGROUP ")
    assert done.status == 0
    assert groups("--describe", "--group", "nobody", "--strict").status == 1


def test_describe_all_groups() -> None:
    done = groups("--describe", "--all-groups", "--output", "json")
    assert [(row["group"], row["partition"], row["lag"]) for row in done.data] == [
        ("busy", 0, 6),
        ("busy", 1, None),
        ("busy", 2, 0),
        ("idle", 0, 3),
        ("idle", 1, 11),
    ]


def test_the_ends_of_all_groups_are_one_request() -> None:
    """A partition without a leader has a wait of the API timeout, which each group repeated."""
    cluster = group_cluster()
    groups("--describe", "--all-groups", cluster=cluster)
    (request,) = cluster.requests_of(ApiKey.LIST_OFFSETS)
    assert sorted(p.partition_index for p in request.topics[0].partitions) == [0, 1, 2]


def test_json_stays_json_when_a_group_is_missing() -> None:
    done = groups("--describe", "--group", "nobody", "--output", "json")
    assert done.data == []
    assert done.stderr.startswith("\nError: Consumer group 'nobody' does not exist.\nHint: ")


def test_delete() -> None:
    done = groups("--delete", "--group", "idle")
    assert done.stdout == "Deletion of requested consumer groups ('idle') was successful.\n"
    done = groups("--delete", "--all-groups")
    assert done.stdout.splitlines() == [
        "",
        "Error: Deletion of some consumer groups failed:",
        "* Group 'busy' could not be deleted due to: The group is not empty.",
        "",
        "These consumer groups were deleted successfully: 'idle'",
    ]
    assert (done.status, groups("--delete", "--group", "busy", "--strict").status) == (0, 1)


@pytest.mark.parametrize(
    ("group", "topic", "first", "status"),
    [
        ("idle", "t:0", "Request succeed for deleting offsets with topic t:0 group idle", 0),
        ("nobody", "t", "Error: 'nobody' does not exist.", 1),
        ("busy", "t:0,1", "Error: Encounter some partition level error, see the follow-up", 1),
        ("idle", "nope", "Error: Encounter some partition level error, see the follow-up", 1),
    ],
)
def test_delete_offsets(group: str, topic: str, first: str, status: int) -> None:
    words = ("--delete-offsets", "--group", group, "--topic", topic)
    done = groups(*words)
    assert done.stdout.strip().startswith(first)
    assert (done.status, groups(*words, "--strict").status) == (0, status)


def test_a_reset_is_dry_unless_it_is_executed() -> None:
    cluster = group_cluster()
    done = groups(*RESET, "--all-topics", "--to-latest", cluster=cluster)
    assert done.stderr.startswith("WARN: No action will be performed as the --execute option is")
    assert done.stdout.splitlines()[2].split() == ["idle", "t", "0", "10"]
    assert cluster.requests_of(ApiKey.OFFSET_COMMIT) == []
    done = groups(*RESET, "--all-topics", "--to-latest", "--execute", cluster=cluster)
    assert done.stderr == ""
    assert len(cluster.requests_of(ApiKey.OFFSET_COMMIT)) == 1


@pytest.mark.parametrize("words", [(), ("--export",), ("--output", "json")])
def test_groups_that_were_reset_are_shown_although_another_is_refused(
    words: tuple[str, ...],
) -> None:
    cluster = group_cluster()
    commit = cluster.script[ApiKey.OFFSET_COMMIT]

    def answer(request: Any, port: int) -> OffsetCommitResponse:
        response: OffsetCommitResponse = commit(request, port)
        if request.group_id == "other":
            response.topics[0].partitions[1].error_code = ErrorCode.UNKNOWN_MEMBER_ID
        return response

    cluster.script[ApiKey.OFFSET_COMMIT] = answer
    both = (*RESET, "--group", "other", "--topic", "t:0,1", "--to-latest", "--execute", "--strict")
    done = groups(*both, *words, cluster=cluster)
    assert "following partitions: [t-1]: The coordinator is not aware" in done.stdout + done.stderr
    assert done.status == 1
    shown = done.stdout.partition("Error:")[0]
    assert ("idle" in shown, "other" in shown) == (True, False)


def test_groups_that_were_reset_before_ctrl_c_are_shown() -> None:
    cluster = group_cluster()
    commit = cluster.script[ApiKey.OFFSET_COMMIT]

    def answer(request: Any, port: int) -> OffsetCommitResponse:
        if request.group_id == "other":
            raise KeyboardInterrupt
        response: OffsetCommitResponse = commit(request, port)
        return response

    cluster.script[ApiKey.OFFSET_COMMIT] = answer
    both = (*RESET, "--group", "other", "--topic", "t:0,1", "--to-latest", "--execute")
    done = groups(*both, cluster=cluster)
    assert ("idle" in done.stdout, "other" in done.stdout, done.status) == (True, False, 130)


def test_a_refused_reset_shows_no_offsets() -> None:
    refusal = OffsetCommitResponsePartition(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    topic = OffsetCommitResponseTopic(name="t", partitions=[refusal])
    cluster = group_cluster(OFFSET_COMMIT=OffsetCommitResponse(topics=[topic]))
    done = groups(*RESET, "--topic", "t:0", "--to-latest", "--execute", cluster=cluster)
    assert done.stdout.startswith("\nError: Executing consumer group command failed due to Failed")


def test_an_export_comes_back(tmp_path: Path) -> None:
    scope = ("--all-topics", "--to-current", "--dry-run")
    exported = groups(*RESET, *scope, "--export")
    assert exported.stdout == "t,0,7\nt,1,9\n\n"
    grouped = groups(*RESET, "--group", "new", *scope, "--export")
    assert grouped.stdout == "idle,t,0,7\nidle,t,1,9\n\n"
    file = tmp_path / "offsets.csv"
    file.write_text(exported.stdout)
    done = groups(*RESET, "--from-file", str(file), "--dry-run", "--output", "json")
    assert [(row["partition"], row["new_offset"]) for row in done.data] == [(0, 7), (1, 9)]
    assert {row["executed"] for row in done.data} == {False}


def test_a_group_with_members_is_not_reset() -> None:
    done = groups("--reset-offsets", "--group", "busy", "--topic", "t", "--to-latest", "--dry-run")
    assert done.stdout.splitlines()[:3] == [
        "",
        "Error: Assignments can only be reset if the group 'busy' is inactive, but the current"
        " state is Stable.",
        "",
    ]
    assert done.status == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--topic", "nope", "--to-latest"], "Topic nope does not exist"),
        (["--topic", "t", "--to-datetime", "noon"], "Invalid datetime 'noon': expected YYYY"),
        (["--topic", "t", "--by-duration", "1h"], "Invalid duration '1h': expected PnDTnHnMnS"),
        (["--from-file", "/none.csv"], "Unable to read file /none.csv: No such file or directory"),
    ],
)
def test_what_goes_wrong_is_one_line_and_status_0(words: list[str], said: str) -> None:
    done = groups(*RESET, *words, "--dry-run")
    text = f"\nError: Executing consumer group command failed due to {said}"
    assert done.stdout.startswith(text)
    assert done.stdout.count("\n") == 2
    assert done.status == 0
    assert all(line.startswith("Hint: ") for line in done.stderr.splitlines())
    assert groups(*RESET, *words, "--dry-run", "--strict").status == 1


def test_what_cannot_be_shifted_is_status_1() -> None:
    done = groups(*RESET, "--topic", "t:2", "--shift-by", "1", "--dry-run")
    assert done.stderr.startswith("Cannot shift offset for partition t-2 since there is no current")
    assert done.status == 1


def test_a_negative_offset_in_a_file_is_status_1(tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    file.write_text("t,0,-5\n")
    done = groups(*RESET, "--from-file", str(file), "--dry-run")
    assert done.stderr.startswith(f"{file}: line 1: Invalid negative offset -5\n")
    assert (done.stdout, done.status) == ("", 1)


def test_a_server_that_is_away_is_one_line() -> None:
    cluster = group_cluster()
    cluster.refuse = {1}
    done = groups("--list", "--timeout", "200", cluster=cluster)
    assert "No bootstrap server can be reached" in done.stdout
    assert done.status == 0


def test_a_person_sees_tables() -> None:
    shown = groups("--describe", "--group", "busy", terminal=True).stdout
    assert "reader-1" in shown
    assert "\nGROUP " not in shown


@pytest.mark.parametrize("timeout", ["-1", str(2**63 - 1)])
def test_timeouts_that_no_socket_has(timeout: str) -> None:
    words = ("--bootstrap-server", "127.0.0.1:1", "--list", "--timeout", timeout)
    assert "failed due to" in kafkapy("consumer-groups", *words).stdout
