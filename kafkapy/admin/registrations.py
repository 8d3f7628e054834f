"""Which brokers a cluster keeps a place for (UnregisterBroker, KIP-631)."""

from __future__ import annotations

from kafkapy.admin.errors import check
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.unregister_broker import UnregisterBrokerRequest


def unregister_broker(cluster: Cluster, broker_id: int) -> bool:
    """Make a KRaft cluster forget a broker that is gone for good.

    False: the cluster has no such API; in ZooKeeper mode a broker's registration ends by itself.

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
