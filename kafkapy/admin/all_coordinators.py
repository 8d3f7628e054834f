"""Sends a read request to every broker, about the groups or transactions that it coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from kafkapy.admin.errors import check
from kafkapy.client.cluster import Cluster
from kafkapy.protocol.schema import Message


def request_all_brokers(
    cluster: Cluster, request: Message, min_version: int | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield the id and the response of each live broker. If a broker hangs, or is still loading its
    groups or transactions, the request is retried until the API timeout.

    Raises:
        ApiError: a broker refused, or is too old.
    """
    for broker_id in sorted(cluster.metadata([], refresh=True).brokers):
        send = partial(_send, cluster, request, broker_id, min_version)
        yield broker_id, cluster.retry(send, is_repeatable=True)


def _send(cluster: Cluster, request: Message, broker_id: int, min_version: int | None) -> Any:
    response = cluster.request(request, broker_id=broker_id, min_version=min_version)
    check(response.error_code)
    return response
