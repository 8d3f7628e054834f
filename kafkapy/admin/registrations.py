"""Registrations of brokers in a KRaft cluster (UnregisterBroker, KIP-631)."""

from __future__ import annotations

from kafkapy.admin.errors import check
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.unregister_broker import UnregisterBrokerRequest


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
