"""A scripted cluster that elects leaders: t-0 is elected, t-1 needs none, t-2 fails."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.elect_leaders import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from tests.harness.scripted.scripted_broker import ScriptedCluster
from tests.harness.scripted.scripted_topics import describing_cluster

CODES = (
    ErrorCode.NONE,
    ErrorCode.ELECTION_NOT_NEEDED,
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
)


def electing_cluster(partitions: int = 3) -> ScriptedCluster:
    """A cluster that answers for the first `partitions` partitions."""
    rows = [
        PartitionResult(partition_id=index, error_code=code)
        for index, code in enumerate(CODES[:partitions])
    ]
    results = [ReplicaElectionResult(topic="t", partition_result=rows)]
    return describing_cluster(ELECT_LEADERS=ElectLeadersResponse(replica_election_results=results))
