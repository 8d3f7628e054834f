"""Finds brokers with `--zookeeper`, for commands that then send their requests to brokers.

Kafka's own tools wrote the znodes themselves up to 2.8, and bypassed the controller.
"""

from __future__ import annotations

from typing import Final

from kafkapy.common.cluster_state import BrokerInfo
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.tools.zookeeper.session import with_zookeeper
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import NoNode

_DEFAULT_PROTOCOL: Final = "PLAINTEXT"


def servers_of(connect: str, security_protocol: str = _DEFAULT_PROTOCOL) -> str:
    """The live brokers of the cluster at `host:port,.../chroot`, as a bootstrap server list.

    Raises:
        ApiError: no broker is registered, or no broker has a listener of that security protocol.
        ZooKeeperUnavailable: ZooKeeper does not answer.
        ConfigError: `connect` is malformed.
    """

    async def registered(store: ZkStore) -> list[BrokerInfo]:
        try:
            found = await store.brokers.get_all()
        except NoNode:
            return []
        return [found[broker_id].broker for broker_id in sorted(found)]

    return bootstrap_list(with_zookeeper(connect, registered), connect, security_protocol)


def bootstrap_list(brokers: list[BrokerInfo], connect: str, security_protocol: str) -> str:
    """One address of each broker, with commas between them. Raises as `servers_of`."""
    addresses = []
    for broker in brokers:
        suitable = (e for e in broker.endpoints if e.security_protocol == security_protocol)
        endpoint = next(suitable, None)
        if endpoint is not None:
            addresses.append(f"{endpoint.host}:{endpoint.port}")
    if not addresses:
        listening = f" that listens for {security_protocol}" if brokers else ""
        raise ApiError(
            ErrorCode.BROKER_NOT_AVAILABLE, f"No broker{listening} is registered at {connect}"
        )
    return ",".join(addresses)
