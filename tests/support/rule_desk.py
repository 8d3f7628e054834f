"""An API behind its rule, whose handler writes down what it was asked and answers as told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.security.acls import AccessControlEntry, PatternType, Permission, ResourcePattern
from kafkapy.server.api.authorization_rules import RULES, guard
from kafkapy.server.api.handlers import SERVED
from kafkapy.server.api.transaction_rules import TRANSACTION_RULES
from kafkapy.server.requests.turns import finished


class Desk:
    """One API behind its rule; the user may do what is granted."""

    def __init__(self, key: ApiKey, version: int, *grants: tuple[Any, ...]) -> None:
        authorizer = AclAuthorizer()
        by_pattern: dict[ResourcePattern, list[AccessControlEntry]] = {}
        for kind, name, operation in grants:
            pattern = ResourcePattern(kind, name, PatternType.LITERAL)
            entry = AccessControlEntry("User:a", "*", operation, Permission.ALLOW)
            by_pattern.setdefault(pattern, []).append(entry)
        for pattern, entries in by_pattern.items():
            authorizer.update(pattern, entries)
        self.asked: list[Any] = []
        self.answer: Any = None
        self.image = SimpleNamespace(topic_names_by_id={}, topics={"seen": 1, "hidden": 1})
        broker = SimpleNamespace(
            authorizer=authorizer,
            metadata=SimpleNamespace(image=self.image),
            auto_create_topics=True,
        )
        self.context: Any = SimpleNamespace(
            broker=broker,
            principal="User:a",
            client_host="h",
            version=version,
            header=SimpleNamespace(api_key=key),
        )
        table = {**SERVED, key: SERVED[key]._replace(handle=self._handle)}
        self.handle = guard(table, RULES | TRANSACTION_RULES)[key].handle

    def _handle(self, context: Any, request: Any) -> Any:
        self.asked.append(request)
        return self.answer

    def ask(self, request: Any, answer: Any = None) -> Any:
        self.answer = answer
        return finished(self.handle(self.context, request))
