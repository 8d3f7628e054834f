"""The bit sets of operations in "authorized operations" fields (`AclEntry.supportedOperations`).

Without an authorizer every principal may perform all operations of a resource. With one,
`server.api.authorization` keeps the bits of the allowed operations.
"""

from __future__ import annotations

from typing import Final

from kafkapy.security.acls import Operation


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS: Final = _bits(
    *(Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DESCRIBE, Operation.DELETE),
    *(Operation.ALTER, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
)
GROUP_OPERATIONS: Final = _bits(Operation.READ, Operation.DESCRIBE, Operation.DELETE)
CLUSTER_OPERATIONS: Final = _bits(
    *(Operation.CREATE, Operation.CLUSTER_ACTION, Operation.DESCRIBE_CONFIGS),
    *(Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE, Operation.ALTER, Operation.DESCRIBE),
)
NOT_REQUESTED: Final = -(2**31)
"""The bits of a resource whose operations were not requested."""
