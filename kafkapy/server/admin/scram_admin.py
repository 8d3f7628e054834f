"""Describes and changes the SCRAM credentials in `/config/users`.

The checks, their order and messages are those of `ZkAdminManager.alterUserScramCredentials`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.security.sasl.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    ScramCredential,
    ScramMechanism,
)
from kafkapy.server.requests.turns import CHANGE_UNITS, ROW_UNITS, Pace, chunks
from kafkapy.zk.stores.config_store import until_unchanged
from kafkapy.zk.stores.paths import DEFAULT_ENTITY, desanitize, sanitize
from kafkapy.zk.stores.store import ControllerMoved, ZkStore

logger = logging.getLogger("kafka.server.ZkAdminManager")

_EMPTY_NAME_MESSAGE: Final = "Username must not be empty"


class DescribedUser(NamedTuple):
    """A user's iterations by mechanism, or an error."""

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
    """Describes and changes the credentials of all users in the store."""

    def __init__(self, store: ZkStore, change_lock: asyncio.Lock) -> None:
        """`change_lock` is `ConfigAdmin`'s lock, because a user's quotas are in the same znode."""
        self._configs = store.configs
        self._change_lock = change_lock

    async def describe(self, users: Sequence[str], pace: Pace) -> list[DescribedUser]:
        """Describe these users, or all users with credentials if `users` is empty."""
        if not users:
            configs_by_entity = await self._configs.get_all("users", pace.charge)
            found = []
            for entity, configs in configs_by_entity.items():
                await pace.charge(ROW_UNITS)
                if "/" not in entity and entity != DEFAULT_ENTITY:
                    description = _description(desanitize(entity), configs)
                    if description.error is not ErrorCode.RESOURCE_NOT_FOUND:
                        found.append(description)
            return sorted(found)
        counts = Counter(users)
        described = []
        for user, count in counts.items():
            await pace.charge(CHANGE_UNITS)
            described.append(await self._describe(user, count))
        return described

    async def _describe(self, user: str, count: int) -> DescribedUser:
        if not user:
            return DescribedUser(user, {}, ErrorCode.RESOURCE_NOT_FOUND, _EMPTY_NAME_MESSAGE)
        if count > 1:
            return DescribedUser(
                user,
                {},
                ErrorCode.DUPLICATE_RESOURCE,
                "Cannot describe SCRAM credentials for the same user twice in a single request:"
                f" {user}",
            )
        return _description(user, await self._configs.get("users", sanitize(user)))

    async def alter(
        self, changes: Sequence[Deletion | Upsertion], pace: Pace
    ) -> dict[str, ApiError | None]:
        """Change credentials. Returns None or an error for each user. After an error, none of the
        user's credentials has changed.
        """
        by_user: dict[str, list[Deletion | Upsertion]] = {}
        for few in chunks(changes):
            for change in few:
                by_user.setdefault(change.user, []).append(change)
            await pace.charge(len(few))
        results: dict[str, ApiError | None] = {}
        for user, wanted in by_user.items():
            refusal = _refusal(wanted)
            await pace.charge(ROW_UNITS if refusal else CHANGE_UNITS)
            async with self._change_lock:
                results[user] = refusal or await until_unchanged(partial(self._alter, user, wanted))
        return results

    async def _alter(self, user: str, changes: Sequence[Deletion | Upsertion]) -> ApiError | None:
        entity = sanitize(user)
        configs, version = await self._configs.get_versioned("users", entity)
        for change in changes:
            mechanism = ScramMechanism(change.mechanism)
            if isinstance(change, Upsertion):
                configs[mechanism.config] = ScramCredential.of(
                    mechanism, change.salt, change.salted_password, change.iterations
                ).text()
            elif configs.pop(mechanism.config, None) is None:
                return ApiError(
                    ErrorCode.RESOURCE_NOT_FOUND,
                    "Attempt to delete a user credential that does not exist",
                )
        logger.info("Updating the SCRAM credentials of user %s", user)
        try:
            await self._configs.set("users", entity, configs, version)
        except ControllerMoved as moved:
            return ApiError(ErrorCode.STALE_CONTROLLER_EPOCH, str(moved))
        return None


def _description(user: str, configs: dict[str, str]) -> DescribedUser:
    try:
        iterations = {
            mechanism: ScramCredential.parse(configs[name]).iterations
            for name, mechanism in MECHANISMS.items()
            if name in configs
        }
    except ConfigError as error:
        return DescribedUser(user, {}, ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    if iterations:
        return DescribedUser(user, iterations)
    return DescribedUser(
        user,
        {},
        ErrorCode.RESOURCE_NOT_FOUND,
        f"Attempt to describe a user credential that does not exist: {user}",
    )


def _refusal(changes: Sequence[Deletion | Upsertion]) -> ApiError | None:
    """The last refusal of one user's changes that does not depend on stored credentials."""
    for change in reversed(changes):
        if not change.user:
            return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, _EMPTY_NAME_MESSAGE)
        if change.mechanism not in _MECHANISMS:
            return ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
        if isinstance(change, Upsertion) and change.iterations > ITERATIONS_MAX:
            return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
        if isinstance(change, Upsertion) and change.iterations < ITERATIONS_MIN:
            return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if len({change.mechanism for change in changes}) < len(changes):
        message = "A user credential cannot be altered twice in the same request"
        return ApiError(ErrorCode.DUPLICATE_RESOURCE, message)
    return None
