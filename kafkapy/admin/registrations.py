"""Registrations of brokers in a KRaft cluster (KIP-631, KIP-1073)."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkapy.admin.errors import check
from kafkapy.client.cluster import Cluster
from kafkapy.client.metadata import Broker
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.describe_cluster import DescribeClusterRequest
from kafkapy.protocol.messages.unregister_broker import UnregisterBrokerRequest

_FENCED_VERSION: Final = 2


class Registration(NamedTuple):
    """A registered broker. A fenced one is down, or not ready yet; it stays in the cluster."""

    broker: Broker
    is_fenced: bool


def registrations(cluster: Cluster) -> list[Registration]:
    """The registered brokers, sorted by id. In ZooKeeper mode, these are the live ones.

    Raises:
        ApiError: the cluster refused, or is too old.
    """
    request = DescribeClusterRequest(include_fenced_brokers=True)
    response = cluster.request(request, min_version=_FENCED_VERSION)
    check(response.error_code, response.error_message)
    return sorted(
        Registration(Broker(each.broker_id, each.host, each.port, each.rack), each.is_fenced)
        for each in response.brokers
    )


def unregister_broker(cluster: Cluster, broker_id: int) -> bool:
    """Remove the registration of a broker that has left a KRaft cluster permanently.

    Returns False if the cluster does not have the API. In ZooKeeper mode, a registration ends with
    the broker's session.

    Raises:
        ApiError: the cluster refused.
    """
    try:
        response = cluster.request(UnregisterBrokerRequest(broker_id=broker_id))
    except ApiError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            return False
        raise
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        return False
    check(response.error_code, response.error_message)
    return True
