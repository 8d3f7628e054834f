"""SCRAM credentials in `/config/users`: described, and changed in Kafka's order of checks and words
(`ZkAdminManager.alterUserScramCredentials`)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    ScramCredential,
    ScramMechanism,
)
from kafkapy.server.turns import CHANGE_UNITS, Pace
from kafkapy.zk.paths import DEFAULT_ENTITY, desanitize, sanitize
from kafkapy.zk.store import ControllerMoved, ZkStore
from kafkapy.zk.znodes import ConfigChange

logger = logging.getLogger("kafka.server.ZkAdminManager")

_NO_NAME: Final = "Username must not be empty"


class Described(NamedTuple):
    """A user's iterations by mechanism, or why there are none."""

    user: str
    iterations: dict[ScramMechanism, int]
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class Deletion(NamedTuple):
    """A credential to remove; `mechanism` is as the request has it."""

    user: str
    mechanism: int


_MECHANISMS: Final = frozenset(ScramMechanism)


class Upsertion(NamedTuple):
    """A credential to set."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


class ScramAdmin:
    """Credentials of all users, over the store."""

    def __init__(self, store: ZkStore) -> None:
        self._configs = store.configs

    async def describe(self, users: Sequence[str], pace: Pace) -> list[Described]:
        """What there is of these users, or of all that have any if none is named."""
        if not users:
            every = await self._configs.get_all("users")
            found = [
                _described(desanitize(entity), configs)
                for entity, configs in every.items()
                if "/" not in entity and entity != DEFAULT_ENTITY
            ]
            return sorted(one for one in found if one.error is not ErrorCode.RESOURCE_NOT_FOUND)
        times = Counter(users)
        described = []
        for user, count in times.items():
            await pace.spend(CHANGE_UNITS)
            described.append(await self._describe(user, count))
        return described

    async def _describe(self, user: str, times: int) -> Described:
        if not user:
            return Described(user, {}, ErrorCode.RESOURCE_NOT_FOUND, _NO_NAME)
        if times > 1:
            return Described(
                user,
                {},
                ErrorCode.DUPLICATE_RESOURCE,
                "Cannot describe SCRAM credentials for the same user twice in a single request:"
                f" {user}",
            )
        return _described(user, await self._configs.get("users", sanitize(user)))

    async def alter(
        self, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion], pace: Pace
    ) -> dict[str, ApiError | None]:
        """Change what may be changed; by user, None or why nothing of it was."""
        results: dict[str, ApiError | None] = _refusals(deletions, upsertions)
        by_user: dict[str, tuple[list[Deletion], list[Upsertion]]] = {}
        for upsertion in upsertions:
            by_user.setdefault(upsertion.user, ([], []))[1].append(upsertion)
        for deletion in deletions:
            by_user.setdefault(deletion.user, ([], []))[0].append(deletion)
        for user, (deleted, upserted) in by_user.items():
            if user not in results:
                await pace.spend(CHANGE_UNITS)
                results[user] = await self._alter(user, deleted, upserted)
        return results

    async def _alter(
        self, user: str, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]
    ) -> ApiError | None:
        entity = sanitize(user)
        configs = await self._configs.get("users", entity)
        for deletion in deletions:
            if configs.pop(ScramMechanism(deletion.mechanism).config, None) is None:
                return ApiError(
                    ErrorCode.RESOURCE_NOT_FOUND,
                    "Attempt to delete a user credential that does not exist",
                )
        for each in upsertions:
            mechanism = ScramMechanism(each.mechanism)
            configs[mechanism.config] = ScramCredential.of(
                mechanism, each.salt, each.salted_password, each.iterations
            ).text()
        logger.info("Updating the SCRAM credentials of user %s", user)
        try:
            await self._configs.set("users", entity, configs)
        except ControllerMoved as moved:
            return ApiError(ErrorCode.STALE_CONTROLLER_EPOCH, str(moved))
        await self._configs.notify(ConfigChange("users", entity))
        return None


def _described(user: str, configs: dict[str, str]) -> Described:
    try:
        iterations = {
            mechanism: ScramCredential.parse(configs[name]).iterations
            for name, mechanism in MECHANISMS.items()
            if name in configs
        }
    except ConfigError as error:
        return Described(user, {}, ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    if iterations:
        return Described(user, iterations)
    return Described(
        user,
        {},
        ErrorCode.RESOURCE_NOT_FOUND,
        f"Attempt to describe a user credential that does not exist: {user}",
    )


def _refusals(
    deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]
) -> dict[str, ApiError | None]:
    """By user, what is wrong with the request whatever is stored."""
    found: dict[str, ApiError | None] = {}
    changes: list[Deletion | Upsertion] = [*deletions, *upsertions]
    for change in changes:
        if not change.user:
            found[change.user] = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, _NO_NAME)
        elif change.mechanism not in _MECHANISMS:
            message = "Unknown SCRAM mechanism"
            found[change.user] = ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, message)
        elif isinstance(change, Upsertion) and change.iterations > ITERATIONS_MAX:
            message = "Too many iterations"
            found[change.user] = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, message)
        elif isinstance(change, Upsertion) and change.iterations < ITERATIONS_MIN:
            message = "Too few iterations"
            found[change.user] = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, message)
    times = Counter((change.user, change.mechanism) for change in changes)
    for (user, _), count in times.items():
        if count > 1 and user not in found:
            found[user] = ApiError(
                ErrorCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            )
    return found
