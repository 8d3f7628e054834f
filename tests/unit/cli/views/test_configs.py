"""`configs --describe` and what a change prints, to the letter."""

import math

from kafkapy.admin.configs import ConfigEntry, Synonym
from kafkapy.admin.quotas import CLIENT_ID, IP, USER, QuotaEntity
from kafkapy.cli.views.configs import completed_report, quotas_report, resources_report


def entry(name: str, value: str | None, *synonyms: Synonym, sensitive: bool = False) -> ConfigEntry:
    source = synonyms[0].source if synonyms else 5
    return ConfigEntry(name, value, source, sensitive, False, synonyms)


def test_rows_are_sorted_and_sources_named() -> None:
    entries = [
        entry("b", "2", Synonym("b", "2", 1), Synonym("log.b", "3", 4)),
        entry("a", None, Synonym("a", None, 2), sensitive=True),
        entry("c", "x", Synonym("c", "x", 99), Synonym("c", "y", 7)),
    ]
    report = resources_report("topics", {"t": entries}, everything=False)
    assert list(report.text) == [
        "Dynamic configs for topic t are:",
        "  a=null sensitive=true synonyms={DYNAMIC_BROKER_CONFIG:a=null}",
        "  b=2 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:b=2, STATIC_BROKER_CONFIG:log.b=3}",
        "  c=x sensitive=false synonyms={UNKNOWN:c=x, DYNAMIC_CLIENT_METRICS_CONFIG:c=y}",
    ]
    assert [c["name"] for c in report.data[0]["configs"]] == ["a", "b", "c"]
    assert report.tables[0].title == "Dynamic configs for topic t"


def test_titles() -> None:
    found = {"0": [], "": []}
    assert list(resources_report("brokers", found, everything=True).text) == [
        "All configs for broker 0 are:",
        "Default configs for brokers in the cluster are:",
    ]


def test_quotas_name_their_entities() -> None:
    both = (QuotaEntity(USER, "u"), QuotaEntity(CLIENT_ID, ""))
    report = quotas_report(
        {
            both: {"producer_byte_rate": 1024.0, "request_percentage": 5.0},
            (QuotaEntity(IP, "::1"),): {},
        }
    )
    assert list(report.text) == [
        "Quota configs for user-principal 'u', the default client-id are "
        "producer_byte_rate=1024.0, request_percentage=5.0",
        "Quota configs for ip '::1' are ",
    ]
    assert report.data[0]["entity"] == {"user": "u", "client-id": ""}


def test_quotas_are_written_as_java_writes_doubles() -> None:
    rates = {"producer_byte_rate": 123456789.0, "consumer_byte_rate": 1e7, "a": 1e-5, "b": math.inf}
    report = quotas_report({(QuotaEntity(USER, "u"),): rates})
    assert list(report.text) == [
        "Quota configs for user-principal 'u' are producer_byte_rate=1.23456789E8,"
        " consumer_byte_rate=1.0E7, a=1.0E-5, b=Infinity"
    ]
    assert report.data[0]["configs"] == {**rates, "b": "Infinity"}, "JSON has no such number"


def test_what_a_change_prints() -> None:
    def line(kind: str, name: str) -> str:
        return next(iter(completed_report(kind, name, {"a": "1"}, ["b"]).text))

    assert line("topics", "t") == "Completed updating config for topic t."
    assert line("broker-loggers", "0") == "Completed updating config for broker-logger 0."
    assert line("brokers", "") == "Completed updating default config for brokers in the cluster."
    data = completed_report("topics", "t", {"a": "1"}, ["b"]).data
    assert data == [
        {"entity_type": "topics", "entity_name": "t", "set": {"a": "1"}, "deleted": ["b"]}
    ]


def test_passwords_are_not_shown_again() -> None:
    """JSON goes to logs, and the passwords may come from a file of --add-config-file."""
    secrets = {
        "SCRAM-SHA-256": "[iterations=8192,password=p]",
        "listener.name.ssl.ssl.keystore.password": "p",
        "password.encoder.secret": "p",
    }
    [row] = completed_report("brokers", "0", {**secrets, "a": "1"}, []).data
    assert row["set"] == {**dict.fromkeys(secrets), "a": "1"}
