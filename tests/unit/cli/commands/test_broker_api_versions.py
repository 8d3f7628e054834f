"""`kafkapy broker-api-versions`, to the letter."""

from kafkapy.protocol.api_keys import ApiKey
from tests.harness.scripted.cli import kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

VERSIONS = {
    ApiKey.PRODUCE: (0, 11),
    ApiKey.FETCH: (19, 20),
    ApiKey.METADATA: (0, 12),
    ApiKey.API_VERSIONS: (0, 3),
    ApiKey.OFFSET_DELETE: (0, 0),
    99: (0, 3),
}


def cluster() -> ScriptedCluster:
    brokers = metadata(brokers={1: 9001, 2: 9002})
    scripted = ScriptedCluster({ApiKey.METADATA: brokers}, VERSIONS)  # type: ignore[arg-type]
    scripted.refuse = {9002}
    return scripted


def test_text() -> None:
    outcome = kafkapy("broker-api-versions", "--bootstrap-server", "b:1", cluster=cluster())
    lines = outcome.stdout.splitlines()
    assert lines[:4] == [
        "b:9001 (id: 1 rack: null) -> (",
        "\tProduce(0): 0 to 11 [usable: 11],",
        "\tFetch(1): 19 to 20 [unusable: node too new],",
        "\tListOffsets(2): UNSUPPORTED,",
    ]
    assert "\tOffsetDelete(47): 0 [usable: 0]," in lines
    assert "\tDescribeQuorum(55): UNSUPPORTED," in lines
    assert not any("LeaderAndIsr" in line for line in lines)
    assert lines[-3:] == [
        "\tUNKNOWN(99): 0 to 3",
        ")",
        "b:9002 (id: 2 rack: null) -> ERROR: Connection to b:9002 could not be established: "
        "Connection refused",
    ]
    assert outcome.status == 0


def test_json() -> None:
    words = ("broker-api-versions", "--bootstrap-server", "b:1", "--output", "json")
    first, second = kafkapy(*words, cluster=cluster()).data
    assert first["apis"][0] == {"key": 0, "name": "Produce", "versions": [0, 11], "usable": 11}
    assert (second["broker"], second["apis"]) == (2, [])
    assert "refused" in second["error"]


def test_a_server_is_needed() -> None:
    outcome = kafkapy("broker-api-versions", "--output", "text")
    assert outcome.stderr.startswith('Missing required argument "[bootstrap-server]"')
