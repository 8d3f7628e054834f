"""API versions that a broker supports, compared with those of a 3.9 client."""

from kafkapy.admin.api_versions import KNOWN_APIS, ApiSupport, broker_api_versions
from kafkapy.client.cluster import Cluster
from kafkapy.protocol.api_keys import ApiKey
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata


def test_every_kind_of_support() -> None:
    versions = {
        ApiKey.PRODUCE: (3, 20),
        ApiKey.FETCH: (19, 20),
        ApiKey.METADATA: (0, 12),
        ApiKey.API_VERSIONS: (0, 3),
        55: (0, 5),
        200: (1, 1),
    }
    scripted = ScriptedCluster({ApiKey.METADATA: metadata()}, versions)  # type: ignore[arg-type]
    (found,) = broker_api_versions(Cluster("b:1", connector=scripted.connect))
    apis = {api.key: api for api in found.apis}
    assert apis[0] == ApiSupport(0, "Produce", (3, 20), 13)
    assert apis[1] == ApiSupport(1, "Fetch", (19, 20), None, "too new")
    assert apis[2] == ApiSupport(2, "ListOffsets", None)
    assert apis[55] == ApiSupport(55, "DescribeQuorum", (0, 5), 2)
    assert apis[200] == ApiSupport(200, "UNKNOWN", (1, 1))
    assert ApiKey.LEADER_AND_ISR not in apis
    assert list(apis) == sorted(apis)


def test_what_kafkas_tool_does_not_know_is_not_missed() -> None:
    """Its lines stay those of 3.9 at a broker of 3.9."""
    versions = {ApiKey.METADATA: (0, 12), ApiKey.SHARE_FETCH: (1, 2)}
    scripted = ScriptedCluster({ApiKey.METADATA: metadata()}, versions)
    [found] = broker_api_versions(Cluster("b:1", connector=scripted.connect))
    apis = {api.key: api for api in found.apis}
    assert apis[78] == ApiSupport(78, "ShareFetch", (1, 2), 2)
    assert apis[79] == ApiSupport(79, "ShareAcknowledge", None)
    assert ApiKey.ALTER_SHARE_GROUP_OFFSETS not in apis


def test_names_are_kafkas() -> None:
    names = {KNOWN_APIS[key][0] for key in (4, 22, 36, 51)}
    assert names == {
        "LeaderAndIsr",
        "InitProducerId",
        "SaslAuthenticate",
        "AlterUserScramCredentials",
    }
