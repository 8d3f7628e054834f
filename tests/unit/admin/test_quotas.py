"""Quotas: how an entity is asked for and changed."""

import pytest

from kafkapy.admin.quotas import CLIENT_ID, IP, USER, QuotaEntity, alter_quotas, describe_quotas
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import alter_client_quotas as alter
from kafkapy.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata


def test_any_exact_and_default() -> None:
    entry = EntryData(
        entity=[
            EntityData(entity_type="user", entity_name="u"),
            EntityData(entity_type="client-id", entity_name=None),
        ],
        values=[ValueData(key="request_percentage", value=5.0)],
    )
    answer = DescribeClientQuotasResponse(entries=[entry])
    scripted = ScriptedCluster({ApiKey.DESCRIBE_CLIENT_QUOTAS: answer})
    cluster = Cluster("b:1", connector=scripted.connect)
    asked = [QuotaEntity(USER, "u"), QuotaEntity(CLIENT_ID, ""), QuotaEntity(IP, None)]
    found = describe_quotas(cluster, asked)
    entity = (QuotaEntity(USER, "u"), QuotaEntity(CLIENT_ID, ""))
    assert found == {entity: {"request_percentage": 5.0}}
    (request,) = scripted.requests_of(ApiKey.DESCRIBE_CLIENT_QUOTAS)
    parts = [(c.entity_type, c.match_type, c.match) for c in request.components]
    assert parts == [("user", 0, "u"), ("client-id", 1, None), ("ip", 2, None)]


def test_the_parts_of_an_entity_stand_as_kafkas_tool_has_them() -> None:
    """Brokers give them in the order of a hash; a user comes before the client."""
    parts = [("client-id", None), ("user", "u")]
    entry = EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in parts]
    )
    answer = DescribeClientQuotasResponse(entries=[entry])
    scripted = ScriptedCluster({ApiKey.DESCRIBE_CLIENT_QUOTAS: answer})
    asked = [QuotaEntity(USER, None), QuotaEntity(CLIENT_ID, None)]
    (entity,) = describe_quotas(Cluster("b:1", connector=scripted.connect), asked)
    assert entity == (QuotaEntity(USER, "u"), QuotaEntity(CLIENT_ID, ""))


def test_alter_goes_to_the_controller() -> None:
    refused = alter.EntryDataResponse(error_code=42, error_message="no")
    answers = [
        alter.AlterClientQuotasResponse(entries=[alter.EntryDataResponse()]),
        alter.AlterClientQuotasResponse(entries=[refused]),
    ]
    scripted = ScriptedCluster(
        {ApiKey.ALTER_CLIENT_QUOTAS: answers, ApiKey.METADATA: metadata(brokers={1: 9001})}
    )
    cluster = Cluster("b:1", connector=scripted.connect)
    alter_quotas(cluster, [QuotaEntity(USER, "")], {"a": 1.5}, ["b"])
    port, request, _ = scripted.requests[-1]
    (entry,) = request.entries
    assert (port, entry.entity[0].entity_name) == (9001, None)
    assert [(o.key, o.value, o.remove) for o in entry.ops] == [("a", 1.5, False), ("b", 0.0, True)]
    with pytest.raises(ApiError, match="no"):
        alter_quotas(cluster, [QuotaEntity(USER, "u")], {}, ["b"])
