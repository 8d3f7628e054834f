"""SCRAM credentials of users (KIP-554): describe, and set or delete."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kafkapy.admin.errors import check
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafkapy.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kafkapy.security.sasl.scram import ITERATIONS_MIN, ScramMechanism

SALT_BYTES: Final = 24


class NewCredential(NamedTuple):
    """A password to store, with its number of iterations."""

    password: str
    iterations: int = ITERATIONS_MIN

    def salted_password(self, mechanism: ScramMechanism, salt: bytes) -> bytes:
        """The salted password of RFC 5802. The password itself does not leave this process."""
        return mechanism.salted_password(self.password, salt, self.iterations)


def describe_scram(
    cluster: Cluster, users: Iterable[str] | None = None
) -> dict[str, dict[ScramMechanism, int]]:
    """Iterations by mechanism of users (None: all); a user without credentials is left out.

    Raises:
        ApiError: the broker refused, or has no SCRAM (UNSUPPORTED_VERSION).
    """
    rows = None if users is None else [UserName(name=user) for user in users]
    response = cluster.request(DescribeUserScramCredentialsRequest(users=rows))
    check(response.error_code, response.error_message)
    found = {}
    for result in response.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        check(result.error_code, result.error_message)
        found[result.user] = {
            ScramMechanism(info.mechanism): info.iterations for info in result.credential_infos
        }
    return found


def alter_scram(
    cluster: Cluster,
    user: str,
    sets: Mapping[ScramMechanism, NewCredential],
    deletes: Iterable[ScramMechanism],
) -> None:
    """Set and delete credentials of one user.

    Raises:
        ApiError: the controller refused; RESOURCE_NOT_FOUND: a credential to delete does not exist.
    """
    upsertions = []
    for mechanism, credential in sets.items():
        salt = os.urandom(SALT_BYTES)
        upsertions.append(
            ScramCredentialUpsertion(
                name=user,
                mechanism=mechanism,
                iterations=credential.iterations,
                salt=salt,
                salted_password=credential.salted_password(mechanism, salt),
            )
        )
    deletions = [ScramCredentialDeletion(name=user, mechanism=each) for each in deletes]
    response = cluster.controller_request(
        AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    )
    for result in response.results:
        check(result.error_code, result.error_message)
