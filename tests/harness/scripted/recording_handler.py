"""An API behind its authorization rule, with a handler that records requests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.security.acls import AccessControlEntry, PatternType, Permission, ResourcePattern
from kafkapy.server.api import handler_table
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.requests.turns import run_now


class RecordingHandler:
    """One API behind its authorization rule; User:a has the permissions of `grants`."""

    def __init__(
        self, key: ApiKey, version: int, *grants: tuple[Any, ...], auto_create_topics: bool = True
    ) -> None:
        authorizer = AclAuthorizer()
        by_pattern: dict[ResourcePattern, list[AccessControlEntry]] = {}
        for kind, name, operation in grants:
            pattern = ResourcePattern(kind, name, PatternType.LITERAL)
            entry = AccessControlEntry("User:a", "*", operation, Permission.ALLOW)
            by_pattern.setdefault(pattern, []).append(entry)
        for pattern, entries in by_pattern.items():
            authorizer.update(pattern, entries)
        self.requests: list[Any] = []
        self.answer: Any = None
        self.image = SimpleNamespace(topic_names_by_id={}, topics={"seen": 1, "hidden": 1})
        self.context: Any = SimpleNamespace(
            principal="User:a",
            client_host="h",
            version=version,
            header=SimpleNamespace(api_key=key),
        )
        table = handler_table.table(
            {key: self._handle},
            Authorization(authorizer),
            auto_create_topics,
            MetadataCache(),
        )
        self.handle = table[key].handle

    def _handle(self, context: Any, request: Any) -> Any:
        self.requests.append(request)
        return self.answer

    def ask(self, request: Any, answer: Any = None) -> Any:
        self.answer = answer
        return run_now(self.handle(self.context, request))
