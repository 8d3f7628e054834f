"""Topic names that are paths or lines: what a controller's commands and a damaged disk can do with
them to a broker that runs, and to its next start."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.messages import leader_and_isr as lai
from kafkapy.protocol.messages import stop_replica as sr
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.raw_connection import RawConnection
from tests.harness.processes.topics import create_topic

REFUSED = ErrorCode.INVALID_TOPIC_EXCEPTION
TOPIC_ID = Uuid(bytes(15) + b"x")


def lead(topic: str) -> lai.LeaderAndIsrRequest:
    row = lai.LeaderAndIsrPartitionState(
        partition_index=0, controller_epoch=1, leader=0, leader_epoch=5, isr=[0], replicas=[0]
    )
    states = [
        lai.LeaderAndIsrTopicState(topic_name=topic, topic_id=TOPIC_ID, partition_states=[row])
    ]
    return lai.LeaderAndIsrRequest(controller_epoch=1, broker_epoch=-1, topic_states=states)


def delete(topic: str) -> sr.StopReplicaRequest:
    row = sr.StopReplicaPartitionState(partition_index=0, leader_epoch=-2, delete_partition=True)
    states = [sr.StopReplicaTopicState(topic_name=topic, partition_states=[row])]
    return sr.StopReplicaRequest(controller_epoch=1, broker_epoch=-1, topic_states=states)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_broker_that_was_sent_hostile_names_touches_nothing_and_starts_again(
    tmp_path: Path, is_clean: bool
) -> None:
    """Without an authorizer, which is the default, everybody may send these."""
    victim = tmp_path / "victim-0"
    victim.mkdir()
    (victim / "file").write_text("mine")
    log_dir = tmp_path / "logs" / "one"
    log_dir.parent.mkdir()
    names = ("../../victim", "../../made", "line\nvictim 0 99\nx", "..", "a/b")
    with BrokerProcess(log_dir, {}) as broker:
        create_topic(broker.bootstrap_servers, "kept", 1)
        with RawConnection(broker.bootstrap_servers) as client:
            for name in names:
                led = client.request(lead(name), 7, lai.LeaderAndIsrResponse)
                assert [p.error_code for t in led.topics for p in t.partition_errors] == [REFUSED]
                stopped = client.request(delete(name), 4, sr.StopReplicaResponse)
                assert [(p.topic_name, p.error_code) for p in stopped.partition_errors] == [
                    (name, REFUSED)
                ]
        if is_clean:
            assert broker.stop() in (0, 143)
        else:
            broker.kill()
        assert (victim / "file").read_text() == "mine"
        assert {path.name for path in tmp_path.iterdir()} == {"victim-0", "logs"}
        assert {path.name for path in log_dir.iterdir() if path.is_dir()} == {"kept-0"}
        broker.start()
        assert "Traceback" not in broker.output_text()


def test_what_an_older_broker_let_in_does_not_stop_the_start(tmp_path: Path) -> None:
    """Directories and checkpoints as the attack left them."""
    log_dir = tmp_path / "logs"
    with BrokerProcess(log_dir, {}) as broker:
        create_topic(broker.bootstrap_servers, "kept", 1)
        assert broker.stop() in (0, 143)
        (log_dir / "line\nvictim 0 99\nx-0").mkdir()
        for name in ("replication", "recovery-point"):
            lines = "0\n2\nkept 0 0\nline\nvictim 0 99\nx 0 0\n"
            (log_dir / f"{name}-offset-checkpoint").write_text(lines)
        broker.start()
        create_topic(broker.bootstrap_servers, "more", 1)
