"""Connection creation rates: of the broker, of each listener, and for inter-broker connections."""

from __future__ import annotations

import math

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.quotas.creation_rates import KEY, CreationRates

LISTENERS = "INSIDE://127.0.0.1:1,OUTSIDE://127.0.0.1:2,OTHER://127.0.0.1:3"
OF_OUTSIDE, OF_INSIDE = f"listener.name.outside.{KEY}", f"listener.name.inside.{KEY}"
NOW_MS = 100_000


def rates(listeners: str = LISTENERS, **properties: str) -> CreationRates:
    names = [each.partition(":")[0] for each in listeners.split(",")]
    return CreationRates(
        KafkaConfig(
            {
                "listeners": listeners,
                "listener.security.protocol.map": ",".join(f"{n}:PLAINTEXT" for n in names),
                "inter.broker.listener.name": "INSIDE",
                **{name.replace("_", "."): value for name, value in properties.items()},
            }
        )
    )


def pauses(of: CreationRates, *listeners: str) -> list[int]:
    """The pauses of twelve connections to each listener; ten windows allow ten."""
    return [of.record_connection(listener, NOW_MS) for _ in range(12) for listener in listeners]


def test_without_a_rate_nobody_waits() -> None:
    assert set(pauses(rates(), "OUTSIDE")) == {0}


def test_a_rate_of_the_broker_holds_for_all_clients_together() -> None:
    of = rates(max_connection_creation_rate="2")
    assert pauses(of, "OUTSIDE", "OTHER") == [0] * 20 + [500, 1000, 1000, 1000]


def test_the_listener_of_brokers_does_not_count_for_the_broker() -> None:
    of = rates(max_connection_creation_rate="1")
    # Its own rate is the broker's where it has none, as in Kafka.
    assert pauses(of, "INSIDE") == [0] * 10 + [1000, 1000]
    assert of.broker.rate.rate(NOW_MS) == 0
    assert pauses(of, "OUTSIDE") == [0] * 10 + [1000, 1000]
    assert of.broker.rate.rate(NOW_MS) == 1.2


def test_the_only_listener_is_not_protected() -> None:
    of = rates("INSIDE://127.0.0.1:1")
    pauses(of, "INSIDE")
    assert of.broker.rate.rate(NOW_MS) == 1.2


def test_listeners_have_rates_of_their_own() -> None:
    of = rates()
    of.update({KEY: "100", OF_OUTSIDE: "1", OF_INSIDE: "0"})
    assert pauses(of, "OUTSIDE") == [0] * 10 + [1000, 1000]
    assert set(pauses(of, "OTHER")) == {0}
    assert set(pauses(of, "INSIDE")) == {1000}
    of.update({})
    assert set(pauses(of, "OUTSIDE", "INSIDE")) == {0}


@pytest.mark.parametrize("rate", ["-1", "many"])
def test_a_rate_that_is_none_changes_nothing(rate: str) -> None:
    of = rates(max_connection_creation_rate="7")
    with pytest.raises(ConfigError, match=f"{KEY}"):
        of.update({KEY: "8", OF_OUTSIDE: rate})
    assert of.broker.limit == 7
    assert of.listeners["OUTSIDE"].limit == 7


def test_pauses_are_kept_for_the_metrics() -> None:
    of = rates(max_connection_creation_rate="1")
    pauses(of, "OUTSIDE")
    assert of.listeners["OUTSIDE"].pauses.average(NOW_MS) == 1000
    assert math.isnan(of.listeners["OTHER"].pauses.average(NOW_MS))
    of.record_address_pause("OTHER", 300, NOW_MS)
    averages = {name: stat.average(NOW_MS) for name, stat in of.address_pauses()}
    assert averages["OTHER"] == 300
    assert math.isnan(averages["OUTSIDE"])


def test_listeners_come_and_go() -> None:
    of = rates(max_connection_creation_rate="1")
    pauses(of, "OUTSIDE")
    of.set_listeners(["INSIDE", "OUTSIDE", "NEW"])
    of.update({KEY: "1"})
    assert of.listeners["OUTSIDE"].rate.rate(NOW_MS) == 1.2
    assert of.listeners["NEW"].rate.rate(NOW_MS) == 0
    of.record_address_pause("OTHER", 300, NOW_MS)  # a connection of before
    assert of.record_connection("OTHER", NOW_MS) == 1000
    assert [name for name, _ in of.address_pauses()] == ["INSIDE", "OUTSIDE", "NEW"]
    of.set_listeners(["INSIDE"])
    of.record_connection("INSIDE", NOW_MS)  # not protected any more
    assert of.broker.rate.rate(NOW_MS) == 1.4
