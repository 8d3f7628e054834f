"""Topics are deleted by name or id; what an id means and who may delete it is decided together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.cluster_state import TopicDescription
from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkapy.security.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from kafkapy.server.admin.topic_admin import TopicAdmin, TopicDefaults
from kafkapy.server.api import handler_table
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.request_context import RequestContext
from tests.harness.cores.areas import area
from tests.harness.cores.controllers import topic_id
from tests.harness.cores.ports import CountingRandom
from tests.harness.cores.server_parts import Parts
from tests.harness.cores.znodes import run
from tests.harness.scripted import admins
from tests.harness.storage.partitions import TOPIC_ID

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
Row = tuple[str | None, Uuid, int]


class Deleting:
    """The handler over a broker's parts, whose `topic_admin` writes down what it deletes."""

    def __init__(
        self,
        directory: Path,
        *entries: tuple[Operation, Permission],
        names: str = "t",
        delete: Callable[..., Any] | None = None,
    ) -> None:
        self.parts = Parts(directory)
        self.deleted: list[str] = []
        self.ids: dict[str, Uuid | None] = {}  # that the caller said the topics have
        authorizer = AclAuthorizer()
        authorizer.update(
            ResourcePattern(ResourceKind.TOPIC, names, PatternType.LITERAL),
            [AccessControlEntry("User:a", "*", each, how) for each, how in entries],
        )
        topics = area(
            handler_table.topics,
            admin=SimpleNamespace(delete_topic=delete or self._delete),
            controller=SimpleNamespace(controller=SimpleNamespace(is_active=True)),
            metadata=self.parts.metadata,
            waiter=self.parts.waiter,
            authorization=Authorization(authorizer),
            quotas=self.parts.client_quotas,
            slices=self.parts.slices,
        )
        handlers = handler_table.in_background(self.parts.tasks, topics)
        self.handle = handlers[ApiKey.DELETE_TOPICS]

    async def _delete(self, name: str, charge: Any, topic_id: Uuid | None) -> None:
        self.deleted.append(name)
        self.ids[name] = topic_id

    def ask(
        self, *topics: DeleteTopicState, meanwhile: Callable[[], None] = lambda: None
    ) -> list[Row]:
        """The rows of the answer; `meanwhile` happens after the request was received."""

        async def work() -> Any:
            header: Any = SimpleNamespace(
                api_key=ApiKey.DELETE_TOPICS, api_version=6, client_id="c"
            )
            context = RequestContext(header, "h", "L", "User:a")
            pending = self.handle(context, DeleteTopicsRequest(topics=list(topics)))
            meanwhile()
            answered = asyncio.get_running_loop().create_future()
            pending.when_complete(answered.set_result)
            return await answered

        response = asyncio.run(work())
        return [(row.name, row.topic_id, row.error_code) for row in response.responses]


def by_id(name: str | None = None) -> DeleteTopicState:
    return DeleteTopicState(name=name, topic_id=TOPIC_ID)


def by_name(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=name, topic_id=ZERO_UUID)


def test_an_id_that_becomes_known_after_the_request_came_is_authorized_all_the_same(
    tmp_path: Path,
) -> None:
    """The exploit: a rule that runs before the handler knows no topic and lets the row pass."""
    deleting = Deleting(tmp_path)
    rows = deleting.ask(by_id(), meanwhile=lambda: deleting.parts.announce("t"))
    assert rows == [(None, TOPIC_ID, REFUSED)]
    assert deleting.deleted == []


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], (None, TOPIC_ID, REFUSED)),
        ([(Operation.DESCRIBE, ALLOW)], ("t", TOPIC_ID, REFUSED)),
        ([(Operation.DELETE, ALLOW), (Operation.DESCRIBE, DENY)], (None, TOPIC_ID, REFUSED)),
        ([(Operation.DELETE, ALLOW)], ("t", TOPIC_ID, ErrorCode.REQUEST_TIMED_OUT)),
    ],
)
def test_the_name_of_an_id_is_told_to_those_who_may_describe_it(
    tmp_path: Path, entries: list[tuple[Operation, Permission]], expected: Row
) -> None:
    deleting = Deleting(tmp_path, *entries)
    deleting.parts.announce("t")
    assert deleting.ask(by_id()) == [expected]
    assert bool(deleting.deleted) == (expected[2] != REFUSED)


def test_names_ids_and_both(tmp_path: Path) -> None:
    deleting = Deleting(tmp_path, (Operation.DELETE, ALLOW))
    assert deleting.ask(by_id(), by_name("other"), by_id("t")) == [
        (None, TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID),
        ("other", ZERO_UUID, REFUSED),
        ("t", TOPIC_ID, ErrorCode.INVALID_REQUEST),
    ]
    assert deleting.deleted == []


def test_an_id_is_deleted_with_its_id_and_a_name_without(tmp_path: Path) -> None:
    deleting = Deleting(tmp_path, (Operation.DELETE, ALLOW))
    deleting.parts.announce("t")
    deleting.ask(by_id())
    assert deleting.ids == {"t": TOPIC_ID}
    assert deleting.ask(by_name("t")) == [("t", TOPIC_ID, ErrorCode.REQUEST_TIMED_OUT)]
    assert deleting.ids == {"t": None}


def test_a_new_topic_of_the_name_is_not_deleted_by_the_id_of_the_old_one(tmp_path: Path) -> None:
    """Other requests may delete and create the topic between the rows of this one."""
    store = admins.store()
    for name in ("o", "t"):
        run(store.topics.create(TopicDescription(name, TOPIC_ID, {0: (1,)})))
    admin = TopicAdmin(store, admins.metadata(("o", "t")), CountingRandom(), TopicDefaults())

    async def delete(name: str, *args: Any) -> None:
        await admin.delete_topic(name, *args)
        if name == "o":
            await store.topics.update(TopicDescription("t", topic_id(9), {0: (1,)}))

    deleting = Deleting(tmp_path, (Operation.DELETE, ALLOW), names="*", delete=delete)
    deleting.parts.announce("o", topic_id=topic_id(1))
    deleting.parts.announce("t")
    rows = deleting.ask(by_name("o"), by_id())
    assert rows[1] == (None, TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID)
    assert run(store.requests.topic_deletions()) == ["o"]
