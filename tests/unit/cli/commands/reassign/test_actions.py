"""`reassign --execute`, `--verify`, `--cancel`, `--list`: Kafka's text, and throttles that go."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkapy.cli.framework.environment import Environment
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
)
from kafkapy.protocol.messages.describe_configs import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkapy.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.moving_cluster import MovingCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
LEADER, FOLLOWER = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
CURRENT = (
    '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any",'
    '"any"]},{"topic":"t","partition":1,"replicas":[2,1],"log_dirs":["any","any"]}]}'
)
ROLLBACK = (
    f"Current partition replica assignment\n\n{CURRENT}\n\n"
    "Save this to use as the --reassignment-json-file option during rollback\n"
)
REMINDER = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the"
    " throttle is removed.\n"
)


class Tool:
    """The tool on a cluster, with the file that moves t-0 to 3,2 and t-1 to 3,1."""

    def __init__(self, directory: Path, moving: MovingCluster) -> None:
        self.moving = moving
        self.path = directory / "moves.json"
        self.write({"replicas": [3, 2]}, {"replicas": [3, 1]})

    def write(self, *rows: dict[str, object]) -> None:
        partitions = [{"topic": "t", "partition": p, **row} for p, row in enumerate(rows)]
        self.path.write_text(json.dumps({"version": 1, "partitions": partitions}))

    def __call__(self, *words: str, server: int = 2, **more: bool) -> Outcome:
        servers = ("--bootstrap-server", f"b:900{server}")
        file = () if "--list" in words else ("--reassignment-json-file", str(self.path))
        cluster = self.moving.scripted
        return kafkapy("reassign", *servers, *words, *file, cluster=cluster, **more)


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    return Tool(tmp_path, MovingCluster({"t": [[1, 2], [2, 1]]}, polls_left=2))


def test_execute(tool: Tool) -> None:
    outcome = tool("--execute")
    assert outcome.stdout == (
        ROLLBACK + "Successfully started partition reassignments for t-0,t-1\n"
    )
    assert (outcome.stderr, outcome.status) == ("", 0)
    assert tool.moving.running.keys() == {T0, T1}


def test_execute_as_json_has_the_way_back(tool: Tool) -> None:
    (data,) = tool("--execute", "--output", "json").data
    assert data["rollback"] == json.loads(CURRENT)
    assert [(row["replicas"], row["moving"]) for row in data["partitions"]] == [
        ([3, 2, 1], True),
        ([3, 1, 2], True),
    ]


def test_another_number_of_replicas_may_be_forbidden(tool: Tool) -> None:
    tool.write({"replicas": [3, 2, 1]}, {"replicas": [3, 1]})
    outcome = tool("--execute", "--disallow-replication-factor-change")
    assert "t-0: The replication factor is changed from 2 to 3" in outcome.stdout + outcome.stderr
    assert outcome.status == 1
    assert tool.moving.running == {}


@pytest.mark.parametrize("words", [("--additional",), ("--batch-size", "2")])
def test_the_way_back_of_a_move_that_runs_has_no_more_copies_than_before(
    tool: Tool, words: tuple[str, ...]
) -> None:
    """Metadata lists the added replicas too: a rollback with them makes three copies of two."""
    tool.moving.begin(T0, [3, 2], polls_left=3)
    outcome = tool("--execute", *words)
    rollback = json.loads(outcome.stdout.splitlines()[2])["partitions"]
    assert [row["replicas"] for row in rollback] == [[2, 1], [2, 1]]


def test_the_way_back_of_a_move_that_ends_meanwhile_has_no_fewer_copies(tool: Tool) -> None:
    tool.moving.begin(T0, [3, 2], polls_left=1)
    outcome = tool("--execute", "--additional")
    rollback = json.loads(outcome.stdout.splitlines()[2])["partitions"]
    assert [row["replicas"] for row in rollback] == [[3, 2], [2, 1]]


def test_a_throttle_is_set_and_verify_removes_it(tool: Tool) -> None:
    begun = tool("--execute", "--throttle", "500")
    limit = "The inter-broker throttle limit was set to 500 B/s\n"
    started = "Successfully started partition reassignments for t-0,t-1\n"
    assert begun.stdout == ROLLBACK + REMINDER + limit + started
    rates = {LEADER: "500", FOLLOWER: "500"}
    lists = {
        "leader.replication.throttled.replicas": "0:1,0:2,1:1,1:2",
        "follower.replication.throttled.replicas": "0:3,1:3",
    }
    assert tool.moving.configs == {
        (2, "t"): lists,
        **{(4, str(broker_id)): rates for broker_id in (1, 2, 3)},
    }
    assert tool("--verify").stdout == (
        "Status of partition reassignment:\n"
        "Reassignment of partition t-0 is still in progress.\n"
        "Reassignment of partition t-1 is still in progress.\n\n"
    )
    assert tool.moving.configs != {}
    tool("--verify")
    assert tool("--verify").stdout == (
        "Status of partition reassignment:\n"
        "Reassignment of partition t-0 is completed.\n"
        "Reassignment of partition t-1 is completed.\n\n"
        "Clearing broker-level throttles on brokers 1,2,3,4\n"
        "Clearing topic-level throttles on topic t\n"
    )
    assert tool.moving.configs == {}


def test_throttles_that_others_set_come_back_and_the_user_is_told(tool: Tool) -> None:
    tool.moving.polls_left = 1
    tool.moving.set_config(4, "4", leader_replication_throttled_rate="77")
    tool.moving.set_config(2, "t", leader_replication_throttled_replicas="*")
    before = json.loads(json.dumps([[*key, value] for key, value in tool.moving.configs.items()]))
    begun = tool("--execute", "--throttle", "500")
    record = f"{tool.path}.throttles"
    assert f"There are throttles already: they are saved in {record}, and --verify" in begun.stderr
    tool("--execute", "--throttle", "900", "--additional")
    tool("--verify")
    assert tool("--verify").stderr == (
        "Throttles from before this reassignment are set on broker 4, topic t: kafkapy configs"
        " --describe shows them\n"
    )
    assert [[*key, value] for key, value in sorted(tool.moving.configs.items())] == sorted(before)


@pytest.mark.parametrize("end", [("--verify",), ("--cancel",), ("--execute", "--batch-size", "1")])
def test_a_verify_that_is_repeated_deletes_no_earlier_throttle(
    tool: Tool, end: tuple[str, ...]
) -> None:
    """The tool tells its users to run --verify periodically."""
    tool.moving.polls_left = 1
    tool.moving.set_config(4, "4", leader_replication_throttled_rate="77")
    before = {key: dict(configs) for key, configs in tool.moving.configs.items()}
    throttle = ("--throttle", "500")
    tool("--execute", *throttle)
    tool("--list")
    tool(*end, *(throttle if "--execute" in end else ()))
    assert tool.moving.configs == before
    tool("--verify")
    assert tool.moving.configs == before


def test_a_throttle_as_high_as_that_of_an_earlier_run_comes_back(tool: Tool) -> None:
    tool.moving.polls_left = 1
    tool.moving.set_config(4, "3", leader_replication_throttled_rate="77")
    tool("--execute", "--throttle", "500")
    tool("--list")
    tool("--verify")
    tool.moving.set_config(4, "3", leader_replication_throttled_rate="500")
    tool("--execute", "--throttle", "900", "--batch-size", "1")
    assert tool.moving.configs == {(4, "3"): {LEADER: "500"}}


@pytest.mark.parametrize("rate", ["500", "900"])
def test_a_run_that_was_cut_off_leaves_no_throttle_for_the_next_one_to_restore(
    tool: Tool, rate: str
) -> None:
    tool.moving.polls_left = 1
    tool.moving.set_config(4, "4", leader_replication_throttled_rate="77")
    before = dict(tool.moving.configs)
    for _ in range(2):  # each begins moves, which end before anybody verifies
        tool("--execute", "--throttle", "500")
        tool("--list")
        tool("--list")
    tool("--execute", "--throttle", rate, "--batch-size", "1")
    assert tool.moving.configs == before


def test_a_dry_run_in_batches_keeps_the_earlier_throttles_for_verify(tool: Tool) -> None:
    tool.moving.polls_left = 1
    tool.moving.set_config(4, "4", leader_replication_throttled_rate="77")
    before = dict(tool.moving.configs)
    tool("--execute", "--throttle", "500")
    tool("--list")
    looked = tool("--execute", "--throttle", "500", "--batch-size", "1", "--dry-run")
    assert "are set on" not in looked.stderr
    tool("--verify")
    assert tool.moving.configs == before


def test_a_dry_run_in_batches_shows_that_earlier_throttles_come_back(tool: Tool) -> None:
    tool.moving.set_config(4, "4", leader_replication_throttled_rate="77")
    words = ("--execute", "--throttle", "500", "--batch-size", "1", "--dry-run", "--output", "json")
    last = [request for request in tool(*words).data if request["broker_id"] == 4][-1]
    (resource,) = last["body"]["resources"]
    assert {"name": LEADER, "config_operation": 0, "value": "77"} in resource["configs"]


def test_runs_without_a_throttle_keep_the_note_of_earlier_ones(tool: Tool) -> None:
    tool.moving.polls_left = 2
    tool("--execute", "--throttle", "500")
    tool("--execute", "--additional")
    tool("--list")
    tool("--list")
    tool("--execute")
    tool("--list")
    tool("--list")
    tool("--execute", "--throttle", "500", "--batch-size", "1")
    assert tool.moving.configs == {}


def test_a_throttle_that_others_changed_meanwhile_comes_back(tool: Tool) -> None:
    tool.moving.polls_left = 1
    tool.moving.set_config(4, "4", leader_replication_throttled_rate="77")
    tool("--execute", "--throttle", "500")
    tool("--list")
    tool.moving.set_config(4, "4", leader_replication_throttled_rate="88")
    tool("--execute", "--throttle", "500", "--batch-size", "1")
    assert tool.moving.configs == {(4, "4"): {LEADER: "88"}}


def test_a_throttle_of_a_broker_that_is_down_comes_back_with_it(tool: Tool) -> None:
    tool.moving.polls_left = 1
    for broker_id in ("2", "3"):
        tool.moving.set_config(4, broker_id, leader_replication_throttled_rate="77")
    before = {key: dict(configs) for key, configs in tool.moving.configs.items()}
    tool("--execute", "--throttle", "500")
    tool("--list")
    tool.moving.brokers.remove(3)
    tool("--verify")
    tool.moving.brokers.append(3)
    tool("--verify")
    assert tool.moving.configs == before


def test_a_broker_that_was_down_at_verify_keeps_no_throttle_of_the_run_before(tool: Tool) -> None:
    tool.moving.polls_left = 1
    tool("--execute", "--throttle", "500")
    tool("--list")
    tool.moving.brokers.remove(3)
    tool("--verify")
    tool.moving.brokers.append(3)
    tool("--execute", "--throttle", "500", "--batch-size", "1")
    assert tool.moving.configs == {}


@pytest.mark.parametrize("words", [(), ("--throttle", "500", "--batch-size", "1")])
def test_a_broker_that_is_down_while_a_run_continues_gets_its_earlier_throttle_back(
    tool: Tool, words: tuple[str, ...]
) -> None:
    tool.moving.polls_left = 1
    tool.moving.set_config(4, "1", leader_replication_throttled_rate="77")
    before = {key: dict(configs) for key, configs in tool.moving.configs.items()}
    tool.write({"replicas": [3, 2]}, {"replicas": [3, 2]})
    tool("--execute", "--throttle", "500")
    tool("--list")
    tool.moving.brokers.remove(1)
    tool("--execute", *words)
    tool("--list")
    tool("--verify")
    tool.moving.brokers.append(1)
    tool("--verify")
    assert tool.moving.configs == before


def test_another_user_than_that_of_execute_may_verify(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That user may read FILE.throttles, and may not remove it."""
    tool.moving.polls_left = 1
    tool("--execute", "--throttle", "500")
    tool("--list")

    def refuse(path: str) -> None:
        raise PermissionError(path)

    monkeypatch.setattr("os.unlink", refuse)
    outcome = tool("--verify", "--strict")
    assert (outcome.stderr, outcome.status) == ("", 0)
    assert tool.moving.configs == {}
    assert tool("--execute").status == 0


def test_throttles_stay_if_told_so(tool: Tool) -> None:
    tool.moving.polls_left = 1
    tool("--execute", "--throttle", "500")
    tool("--verify")
    assert "Clearing" not in tool("--verify", "--preserve-throttles").stdout
    assert "Clearing" not in tool("--cancel", "--preserve-throttles").stdout
    assert tool.moving.configs != {}


def test_the_throttle_of_a_running_move_can_be_changed(tool: Tool) -> None:
    tool.moving.polls_left = 0
    tool("--execute", "--throttle", "500")
    tool("--execute", "--throttle", "900", "--additional")
    assert tool.moving.configs[4, "3"] == {LEADER: "900", FOLLOWER: "900"}
    tool("--cancel")
    assert tool.moving.configs == {}


def test_batches_end_with_the_throttle_removed(tool: Tool) -> None:
    tool.moving.polls_left = 1
    outcome = tool("--execute", "--throttle", "500", "--batch-size", "1")
    assert outcome.stdout == (
        ROLLBACK
        + REMINDER
        + "The inter-broker throttle limit was set to 500 B/s\n"
        + "Clearing broker-level throttles on brokers 1,2,3,4\n"
        + "Clearing topic-level throttles on topic t\n"
    )
    assert outcome.stderr == "".join(f"{n} of 2 partitions moved\n" for n in range(3))
    assert outcome.status == 0
    assert tool.moving.now() == {"t": [[3, 2], [3, 1]]}
    assert tool.moving.configs == {}


def test_the_end_of_the_reader_of_the_output_ends_the_batch_and_removes_the_throttle(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends `tee` too: the tool stopped at its next line, and the throttle stayed."""
    warn, abandoned = Environment.warn, []

    def to_pipe(env: Environment, text: str) -> None:
        if not abandoned:
            raise BrokenPipeError
        warn(env, text)

    monkeypatch.setattr(Environment, "warn", to_pipe)
    monkeypatch.setattr(Environment, "abandon_output", lambda _: abandoned.append(True))
    tool.moving.polls_left = 1
    outcome = tool("--execute", "--throttle", "500", "--batch-size", "1")
    assert outcome.status == 130
    assert tool.moving.now() == {"t": [[3, 2], [2, 1]]}
    assert tool.moving.configs == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_for_the_batch_and_removes_the_throttle(
    tool: Tool, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """SIGTERM ended the tool at once, and the throttle stayed."""
    warn = Environment.warn

    def warn_and_signal(env: Environment, text: str) -> None:
        warn(env, text)
        if text.startswith("0 of 2"):
            signal.raise_signal(number)

    monkeypatch.setattr(Environment, "warn", warn_and_signal)
    tool.moving.polls_left = 1
    before = signal.signal(number, signal.SIG_IGN)
    try:
        outcome = tool("--execute", "--throttle", "500", "--batch-size", "1")
    finally:
        signal.signal(number, before)
    assert outcome.status == 128 + number
    assert "the same command continues" in outcome.stderr
    assert tool.moving.now() == {"t": [[3, 2], [2, 1]]}
    assert tool.moving.configs == {}


def test_the_throttle_stays_if_a_batch_is_refused_in_part(tool: Tool) -> None:
    tool.moving.polls_left = 0
    tool.moving.refuse[T1] = (ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not alive")
    outcome = tool("--execute", "--throttle", "500", "--batch-size", "2")
    assert outcome.stderr == (
        "Partitions still move: the throttles stay until --verify.\n"
        "Error reassigning partition(s):\nt-1: not alive\n"
    )
    assert outcome.status == 1
    assert list(tool.moving.running) == [T0]
    assert tool.moving.configs[4, "3"] == {LEADER: "500", FOLLOWER: "500"}
    tool("--cancel")
    assert tool.moving.configs == {}


def test_a_user_who_may_not_move_partitions_leaves_no_throttle(tool: Tool) -> None:
    """The right to alter configs is another one."""
    refusal = AlterPartitionReassignmentsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    tool.moving.scripted.script[ApiKey.ALTER_PARTITION_REASSIGNMENTS] = refusal
    outcome = tool("--execute", "--throttle", "500", "--batch-size", "1")
    assert "Error: Cluster authorization failed.\n" in outcome.stderr
    assert outcome.status == 1
    assert tool.moving.configs == {}


def test_the_first_error_is_shown_although_the_throttle_cannot_be_removed_either(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(request: Any, port: int) -> Any:
        refusal = AlterConfigsResourceResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        answer = IncrementalAlterConfigsResponse(responses=[refusal])
        tool.moving.scripted.script[ApiKey.INCREMENTAL_ALTER_CONFIGS] = answer
        return AlterPartitionReassignmentsResponse(error_code=ErrorCode.INVALID_REQUEST)

    monkeypatch.setitem(tool.moving.scripted.script, ApiKey.ALTER_PARTITION_REASSIGNMENTS, refuse)
    outcome = tool("--execute", "--throttle", "500", "--batch-size", "1")
    stay, error = outcome.stderr.splitlines()[-2:]
    assert stay == "The throttles stay until --verify: Cluster authorization failed."
    assert error.startswith("Error: ")
    assert "authorization" not in error


def test_a_topic_that_is_deleted_meanwhile_keeps_no_throttle_of_the_brokers(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    alter = tool.moving.scripted.script[ApiKey.ALTER_PARTITION_REASSIGNMENTS]

    def delete(request: Any, port: int) -> Any:
        answer = alter(request, port)
        tool.moving.delete("t")
        return answer

    monkeypatch.setitem(tool.moving.scripted.script, ApiKey.ALTER_PARTITION_REASSIGNMENTS, delete)
    words = ("--execute", "--throttle", "500", "--batch-size", "2", "--timeout", "0")
    outcome = tool(*words)
    assert "Gave up waiting for t-0, t-1: t-0 does not move any more" in outcome.stderr
    assert tool.moving.configs == {}
    assert not Path(f"{tool.path}.throttles").exists()


def test_batches_have_a_bar_on_a_terminal(tool: Tool) -> None:
    shown = tool("--execute", "--batch-size", "1", terminal=True).stdout
    assert "2 of 2 partitions" in shown
    assert "moved" not in shown


def test_a_partition_that_is_refused_is_named(tool: Tool) -> None:
    tool.moving.refuse[T1] = (ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not alive")
    outcome = tool("--execute")
    assert outcome.stderr == "Error reassigning partition(s):\nt-1: not alive\n"
    assert outcome.status == 1


@pytest.mark.parametrize("words", [(), ("--batch-size", "2")])
def test_a_refusal_as_json_has_the_way_back_too(tool: Tool, words: tuple[str, ...]) -> None:
    tool.moving.refuse[T1] = (ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not alive")
    outcome = tool("--execute", *words, "--output", "json")
    assert (outcome.data[0]["rollback"], outcome.status) == (json.loads(CURRENT), 1)
    assert outcome.stderr.endswith("Error reassigning partition(s):\nt-1: not alive\n")


def test_the_way_back_is_written_before_anything_moves(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    alter = tool.moving.scripted.script[ApiKey.ALTER_PARTITION_REASSIGNMENTS]
    written: list[bytes] = []

    def look(request: Any, port: int) -> Any:
        written.append(sys.stdout.buffer.getvalue())  # type: ignore[attr-defined]
        return alter(request, port)

    monkeypatch.setitem(tool.moving.scripted.script, ApiKey.ALTER_PARTITION_REASSIGNMENTS, look)
    tool("--execute")
    assert written == [ROLLBACK.encode()]


def test_directories(tool: Tool) -> None:
    tool.write({"replicas": [1, 2], "log_dirs": ["/e", "any"]})
    begun = tool("--execute", "--replica-alter-log-dirs-throttle", "300")
    assert begun.stdout.splitlines()[-3:] == [
        "The replica-alter-dir throttle limit was set to 300 B/s",
        "Successfully started partition reassignment for t-0",
        "Successfully started moving log directory to /e for replica t-0 with broker 1 ",
    ]
    rate = "replica.alter.log.dirs.io.max.bytes.per.second"
    assert tool.moving.configs == {(4, "1"): {rate: "300"}}
    tool.moving.running.clear()
    moving = tool("--verify").stdout.splitlines()
    assert moving[-1] == "Reassignment of replica t-0-1 is still in progress."
    back = tool("--cancel").stdout.splitlines()
    assert back[:2] == [
        "None of the specified partition reassignments are active.",
        "Successfully started moving log directory to /d for replica t-0 with broker 1 ",
    ]
    tool.moving.places[T0, 1] = ("/e", None)
    done = tool("--verify").stdout.splitlines()
    assert done[2] == "Reassignment of replica t-0-1 completed successfully."
    assert tool.moving.configs == {}


def test_a_broker_without_the_directory_does_not_keep_those_of_the_others_from_moving(
    tool: Tool,
) -> None:
    """A typing error for one of several brokers: the moves of the rest begin, and are printed."""
    tool.write({"replicas": [2, 1], "log_dirs": ["/nope", "/e"]})
    tool.moving.log_dir_errors[T0, 2] = [ErrorCode.LOG_DIR_NOT_FOUND]
    outcome = tool("--execute", "--timeout", "0")
    assert outcome.stdout.endswith(
        "Successfully started moving log directory to /e for replica t-0 with broker 1 \n"
    )
    assert tool.moving.places == {(T0, 1): ("/d", "/e")}
    assert outcome.stderr == (
        "Error: Failed to alter dir for t-0-2: org.apache.kafka.common.errors."
        "LogDirNotFoundException: The user-specified log directory is not found in the broker"
        " config.\n"
    )
    assert outcome.status == 1


def test_a_cancel_brings_back_the_directories_that_it_can(tool: Tool) -> None:
    tool.write({"replicas": [1, 2], "log_dirs": ["/e", "/e"]})
    tool("--execute")
    tool.moving.log_dir_errors[T0, 1] = [ErrorCode.KAFKA_STORAGE_ERROR]
    outcome = tool("--cancel")
    assert outcome.stdout.endswith(
        "Successfully started moving log directory to /d for replica t-0 with broker 2 \n"
    )
    assert outcome.stderr.startswith("Error: Failed to alter dir for t-0-1: ")
    assert outcome.status == 1


def test_a_directory_move_that_cannot_begin_in_time(tool: Tool) -> None:
    tool.write({"replicas": [1, 2], "log_dirs": ["/e", "any"]})
    tool.moving.log_dir_errors[T0, 1] = [ErrorCode.REPLICA_NOT_AVAILABLE] * 99
    outcome = tool("--execute", "--timeout", "0")
    assert outcome.stderr == ("Timed out before log directory move could be started for: t-0-1\n")
    assert outcome.status == 1


def test_cancel(tool: Tool) -> None:
    tool.moving.polls_left = 0
    tool("--execute")
    assert tool("--cancel").stdout == (
        "Successfully cancelled partition reassignments for: t-0,t-1\n"
        "None of the specified partition moves are active.\n"
        "Clearing broker-level throttles on brokers 1,2,3,4\n"
        "Clearing topic-level throttles on topic t\n"
    )
    assert tool("--cancel", "--output", "json").data == [
        {"cancelled": [], "log_dir_moves_cancelled": []}
    ]


def test_a_move_that_ends_meanwhile_does_not_keep_the_throttle_of_a_cancel(tool: Tool) -> None:
    tool.moving.polls_left = 0
    tool("--execute", "--throttle", "500")
    tool.moving.refuse[T1] = (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no move")
    outcome = tool("--cancel")
    assert outcome.stdout.startswith("Successfully cancelled partition reassignment for: t-0\nNone")
    assert (outcome.stderr, outcome.status) == ("", 0)
    assert tool.moving.configs == {}


def test_the_cancelled_moves_are_named_although_another_is_refused(tool: Tool) -> None:
    tool.moving.polls_left = 0
    tool("--execute", "--throttle", "500")
    tool.moving.refuse[T1] = (ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not alive")
    outcome = tool("--cancel")
    assert outcome.stdout == "Successfully cancelled partition reassignment for: t-0\n"
    assert outcome.stderr == ("Error cancelling partition reassignment for:\nt-1: not alive\n")
    assert outcome.status == 1
    assert tool.moving.configs != {}
    assert tool("--cancel", "--output", "json").data[0]["cancelled"] == []


@pytest.mark.parametrize(
    ("action", "first"),
    [
        ("--verify", "Status of partition reassignment:\nThere is no active reassignment of"),
        ("--cancel", "Successfully cancelled partition reassignments for: t-0,t-1\nNone of"),
    ],
)
@pytest.mark.parametrize("words", [(), ("--output", "json")])
def test_what_is_done_is_said_although_a_throttle_cannot_be_removed(
    tool: Tool, action: str, first: str, words: tuple[str, ...]
) -> None:
    tool.moving.polls_left = 0 if action == "--cancel" else 1
    tool("--execute", "--throttle", "500")
    tool.moving.running = {} if action == "--verify" else tool.moving.running
    refusal = AlterConfigsResourceResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    tool.moving.scripted.script[ApiKey.INCREMENTAL_ALTER_CONFIGS] = IncrementalAlterConfigsResponse(
        responses=[refusal]
    )
    outcome = tool(action, *words)
    assert "Error: Cluster authorization failed." in outcome.stderr
    assert outcome.status == 1
    if words:
        assert outcome.data != []
    else:
        assert outcome.stdout.startswith(first)


def test_cancelled_moves_are_named_although_a_directory_stays(tool: Tool) -> None:
    tool.moving.polls_left = 0
    tool.write({"replicas": [3, 2], "log_dirs": ["any", "/e"]})
    tool("--execute", "--timeout", "0")
    tool.moving.log_dir_errors[T0, 2] = [ErrorCode.LOG_DIR_NOT_FOUND]
    outcome = tool("--cancel")
    assert outcome.stdout == "Successfully cancelled partition reassignment for: t-0\n"
    assert "Error: Failed to alter dir for t-0-2" in outcome.stderr
    assert outcome.status == 1


@pytest.fixture(params=["dead", "silent"])
def directory_mover(tool: Tool, request: pytest.FixtureRequest) -> Tool:
    """Both replicas of t-0 move to /e. Broker 2 is dead, or registered but not reachable."""
    tool.write({"replicas": [1, 2], "log_dirs": ["/e", "/e"]})
    tool("--execute", "--throttle", "500")
    tool.moving.running.clear()
    tool.moving.scripted.refuse = {9002}
    if request.param == "dead":
        tool.moving.brokers.remove(2)
    return tool


def test_a_cancel_fails_if_the_directory_move_of_a_lost_broker_goes_on(
    directory_mover: Tool,
) -> None:
    outcome = directory_mover("--cancel", "--preserve-throttles", server=1)
    assert outcome.stdout == (
        "None of the specified partition reassignments are active.\n"
        "Successfully started moving log directory to /d for replica t-0 with broker 1 \n"
    )
    assert outcome.stderr == (
        "Error cancelling log directory moves, because the broker does not respond: t-0-2\n"
    )
    assert outcome.status == 1
    only_lost = {"replicas": [1, 2], "log_dirs": ["any", "/e"]}
    directory_mover.write(only_lost)
    again = directory_mover("--cancel", "--preserve-throttles", server=1)
    assert "None of the specified partition moves are active." not in again.stdout
    assert again.status == 1


def test_a_cancel_removes_throttles_although_the_directory_of_a_dead_broker_moves(
    tool: Tool,
) -> None:
    tool.write({"replicas": [1, 2], "log_dirs": ["any", "/e"]})
    tool("--execute", "--throttle", "500")
    tool.moving.brokers.remove(2)
    tool.moving.configs.pop((4, "2"))
    assert tool("--cancel", server=1).status == 1
    assert tool.moving.configs == {}


def test_verify_shows_the_partitions_although_a_broker_is_lost(directory_mover: Tool) -> None:
    outcome = directory_mover("--verify", server=1)
    assert outcome.stdout == (
        "Status of partition reassignment:\n"
        "Reassignment of partition t-0 is completed.\n"
        "Reassignment of replica t-0-1 is still in progress.\n"
        "Partition t-0 cannot be found in any live log directory on broker 2.\n"
    )
    assert (outcome.stderr, outcome.status) == ("", 0)


@pytest.mark.parametrize("reason", ["Connection to b:9004", "Cluster authorization failed."])
def test_a_broker_whose_throttles_cannot_be_read_does_not_keep_partitions_from_moving(
    tool: Tool, reason: str
) -> None:
    """Kafka's tool reads no configs: it moves replicas off a broker that is frozen."""
    if reason.startswith("Connection"):
        tool.moving.scripted.refuse = {9004}
    else:
        result = DescribeConfigsResult(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        refusal = DescribeConfigsResponse(results=[result])
        tool.moving.scripted.script[ApiKey.DESCRIBE_CONFIGS] = refusal
    throttled = tool("--execute", "--throttle", "500")
    assert (throttled.status, tool.moving.running) == (1, {})
    outcome = tool("--execute")
    assert tool.moving.running.keys() == {T0, T1}
    assert outcome.stdout.endswith("partition reassignments for t-0,t-1\n")
    assert outcome.stderr.startswith(
        f"Earlier throttles, which --verify would restore, were not saved: {reason}"
    )
    assert outcome.status == 0


def test_list(tool: Tool) -> None:
    tool.moving.polls_left = 0
    assert tool("--list").stdout == "No partition reassignments found.\n"
    tool("--execute")
    tool.moving.begin(TopicPartition("t", 1), [2, 1, 4], 0)
    assert tool("--list").stdout == (
        "Current partition reassignments:\n"
        "t-0: replicas: 3,2,1. adding: 3. removing: 1.\n"
        "t-1: replicas: 2,1,4. adding: 4.\n"
    )
    listed = tool("--list", "--output", "json").data
    assert listed[1]["adding_replicas"] == [4]
    assert "3,2,1" in tool("--list", terminal=True).stdout


def test_a_broker_that_is_down_hangs_nothing(tmp_path: Path) -> None:
    moving = MovingCluster({"t": [[1, 2], [2, 1]]}, down=[1], polls_left=1)
    tool = Tool(tmp_path, moving)
    tool.write({"replicas": [3, 2]})
    begun = tool("--execute", "--throttle", "500")
    assert "Broker 1 is not alive: no throttle was set there.\n" in begun.stderr
    assert begun.status == 0
    tool("--verify")
    tool.write({"replicas": [3, 1]})
    looked = tool("--verify")
    assert "Broker 1 is not alive: its throttles were not removed.\n" in looked.stderr
    assert moving.configs == {}


def test_strict_verify_fails_until_all_is_there(tool: Tool) -> None:
    tool.moving.polls_left = 2
    tool("--execute")
    assert tool("--verify", "--strict").status == 1
    tool("--verify")
    assert tool("--verify", "--strict").status == 0
    tool.write({"replicas": [2, 3]})
    wrong = tool("--verify", "--strict", "--output", "json")
    assert wrong.status == 1
    assert wrong.data[0]["partitions"][0]["complete"] is False
