"""Blocks of producer ids that the controller gives out, which no two brokers share."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.controller.events import AllocateProducerIds
from kafkapy.zk.stores.znodes import ProducerIdBlock
from tests.harness.cores.controllers import Cluster


def allocate(
    cluster: Cluster, broker_id: int, epoch_ahead: int = 0
) -> list[ProducerIdBlock | ErrorCode]:
    replies: list[ProducerIdBlock | ErrorCode] = []
    known = cluster.brokers.get(broker_id)
    epoch = epoch_ahead + (0 if known is None else known.broker_epoch)
    cluster.submit(AllocateProducerIds(broker_id, epoch, replies.append))
    return replies


def test_every_block_is_given_once() -> None:
    cluster = Cluster(1, 2)
    assert allocate(cluster, 2) == [ProducerIdBlock(2, 0, 999)]
    assert allocate(cluster, 2) == [ProducerIdBlock(2, 1000, 1999)]
    assert allocate(cluster, 1) == [ProducerIdBlock(1, 2000, 2999)]


@pytest.mark.parametrize(
    ("broker_id", "epoch_ahead", "error"),
    [(9, 0, ErrorCode.BROKER_ID_NOT_REGISTERED), (2, -1, ErrorCode.STALE_BROKER_EPOCH)],
)
def test_a_broker_that_is_not_registered_so(
    broker_id: int, epoch_ahead: int, error: ErrorCode
) -> None:
    cluster = Cluster(1, 2)
    assert allocate(cluster, broker_id, epoch_ahead) == [error]
    assert allocate(cluster, 2) == [ProducerIdBlock(2, 0, 999)]
