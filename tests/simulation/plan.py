"""Choices that a seed makes before a simulation starts: number of brokers, configs, faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.simulation.events import SECOND_US


@dataclass(slots=True)
class Plan:
    """The choices of a seed. The weights are the relative probabilities of the faults.

    - `power_cut_broker`: the broker whose power may be cut alone.
    - `transactional_ids`: the number of ids that write to the ledger, each used by `rivals` live
      producers.
    - `transforms`: records are copied by consume-transform-produce.
    - `verifies`: partitions send a request to the coordinator before a transaction begins there
      (KIP-890), without which Kafka accepts late batches.
    - `bumps_epochs`: producers have transaction version 2.
    - `caps_transactions`: transaction version 2 is switched off.
    - `compacts`: a topic is compacted.
    - `static_members`: the members of the classic group have instance ids.
    - `consumers`: the number of members of the consumer group (KIP-848).
    - `share_members`: the number of members of the share group (KIP-932).
    - `pipelines`: a producer has five batches in flight.
    - `retains`: a topic has a short retention.
    - `reads_nearby`: readers prefer the replica in their rack (KIP-392).
    - `expires_offsets`: a group's offsets expire.
    - `throttles`: clients have quotas, and replicas and moves between directories are throttled.
    - `drifts`: clocks run at different speeds.
    - `flip_one_in`: a bit of a batch is flipped in one of this many writes to the network.
    """

    brokers: int = 3
    partitions: int = 2
    replication_factor: int = 3
    unclean: bool = False
    faults_us: int = 10 * SECOND_US
    fault_every_us: int = SECOND_US
    power_cut_broker: int = 1
    reset_one_in: int = 0
    transactional_ids: int = 0
    rivals: int = 1
    transforms: bool = False
    verifies: bool = True
    bumps_epochs: bool = False
    compacts: bool = False
    static_members: bool = False
    consumers: int = 0
    pipelines: bool = False
    retains: bool = False
    reads_nearby: bool = False
    expires_offsets: bool = False
    throttles: bool = False
    drifts: bool = False
    flip_one_in: int = 0
    caps_transactions: bool = False
    share_members: int = 0
    config: dict[str, str] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)

    @property
    def has_other_topics(self) -> bool:
        """Whether topics are deleted or grown that no client writes to."""
        return not self.weights.keys().isdisjoint(_OTHER_TOPIC_FAULTS)

    @property
    def sets_clocks(self) -> bool:
        """Whether clocks may differ by much."""
        return "clock jump" in self.weights

    @property
    def trims(self) -> bool:
        """Whether a topic's records are deleted on request."""
        return not self.weights.keys().isdisjoint(_TRIMMING_FAULTS)


_OTHER_TOPIC_FAULTS = {"delete topic", "grow topic", "deletion halts"}
FAULT_WEIGHTS = {
    "kill": 6,
    "kill controller": 3,
    "kill leader": 3,
    "kill at a point": 30,
    "power cut": 4,
    "power cut of all": 2,
    "blackout": 3,
    "power cut after truncation": 8,
    "pause": 4,
    "controlled shutdown": 4,
    "cut link": 4,
    "cut one way": 3,
    "isolate": 3,
    "cut from zookeeper": 4,
    "expire session": 4,
    "zookeeper restart": 2,
    "lost answer": 3,
    "depose controller": 3,
    "slow link": 3,
    "disk failure": 5,
    "reassign": 6,
    "cancel reassignment": 2,
    "preferred election": 4,
    "unclean election": 1,
    "delete records": 8,
    "create topic": 3,
    "delete topic": 4,
    "grow topic": 2,
    "change config": 3,
    "move to another directory": 6,
    "clock jump": 2,
    "slow disk": 3,
    "few descriptors": 2,
    "lost checkpoint": 3,
    "lost index": 2,
    "lost snapshot": 3,
    "flipped bit": 8,
    "cut client": 4,
    "newcomer dies": 3,
    "deletion halts": 4,
    "emptied log": 6,
    "misplaced batch": 4,
}
SEQUENCED_FAULTS = (
    "stranded move",
    "copied tail",
    "joiner expires",
    "deposed at work",
    "all die at a decision",
    "late proposal",
    "placed on the dead",
    "leaves while cleaned",
    "to and fro",
    "lost after cleaning",
    "born within a batch",
    "cut at a roll",
    "truncated while flushed",
    "hung flush",
    "truncated by wrong bits",
)
"""Faults of several steps (`courses`). A seed has two of them, with a high weight."""
_TABLE_FAULTS = {"leaves while cleaned", "lost after cleaning", "hung flush"}
_TRIMMING_FAULTS = {"delete records", "born within a batch"}
_WEIGHT_RATIO = 6
"""The ratio of the weight of all other faults to that of one course."""


TWO_DIRECTORIES = "/data/one,/data/two"
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def plan_of(random: Random) -> Plan:
    """Draw a plan. Most seeds have only some of the faults, so that these coincide."""
    brokers = random.choice((3, 3, 4, 4, 5))
    plan = Plan(
        brokers=brokers,
        partitions=random.choice((1, 2, 2, 3)),
        replication_factor=random.choice((3, 3, 3, 2)),
        unclean=random.random() < 0.08,
        faults_us=random.randrange(4, 10) * SECOND_US,
        fault_every_us=random.choice((300_000, 600_000, 900_000, 1_500_000)),
        power_cut_broker=random.randrange(1, brokers + 1),
        reset_one_in=random.choice((0, 0, 300, 1000)),
    )
    kinds = list(FAULT_WEIGHTS)
    chosen = random.sample(kinds, random.randrange(3, len(kinds) + 1))
    plan.weights = {kind: FAULT_WEIGHTS[kind] for kind in kinds if kind in chosen}
    weight = sum(plan.weights.values()) // _WEIGHT_RATIO
    plan.weights |= dict.fromkeys(random.sample(SEQUENCED_FAULTS, 2), weight)
    if plan.unclean:
        plan.config["unclean.leader.election.enable"] = "true"
    if random.random() < 0.3:
        plan.config["auto.leader.rebalance.enable"] = "false"
    if plan.replication_factor == 2:
        plan.config["min.insync.replicas"] = random.choice(("1", "2"))
    if random.random() < 0.3:
        plan.config["replica.fetch.max.bytes"] = "200"
        plan.config["replica.fetch.response.max.bytes"] = "400"
    if random.random() < 0.45:
        plan.config["log.dirs"] = TWO_DIRECTORIES
    if random.random() < 0.3:
        plan.config["num.replica.fetchers"] = "2"
    if random.random() < 0.3:
        plan.config["replica.lag.time.max.ms"] = "600"  # ISRs change almost all the time
    _draw_transactions(plan, random)
    plan.compacts = random.random() < 0.2 or not plan.weights.keys().isdisjoint(_TABLE_FAULTS)
    plan.static_members = random.random() < 0.4
    plan.consumers = random.choice((0, 0, 0, 2, 3, 4))
    if plan.consumers > 2:
        plan.partitions = 3
    plan.pipelines = random.random() < 0.3
    plan.retains = random.random() < 0.3
    plan.reads_nearby = random.random() < 0.25
    if plan.reads_nearby:
        plan.config["replica.selector.class"] = RACK_AWARE
    plan.expires_offsets = random.random() < 0.25
    if plan.expires_offsets:
        plan.config["offsets.retention.check.interval.ms"] = "400"
    plan.throttles = random.random() < 0.25 or "copied tail" in plan.weights
    if plan.throttles:
        plan.config["log.dirs"] = TWO_DIRECTORIES
    plan.drifts = random.random() < 0.25
    plan.flip_one_in = random.choice((0, 0, 0, 40, 150))
    plan.share_members = random.choice((0, 0, 2, 3))
    return plan


_ID_EXPIRATION = {
    "transactional.id.expiration.ms": "700",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "400",
}


def _draw_transactions(plan: Plan, random: Random) -> None:
    if random.random() < 0.4:
        return
    plan.transactional_ids = random.choice((1, 1, 2, 3))
    plan.rivals = random.choice((1, 2))
    plan.transforms = random.random() < 0.5
    plan.verifies = random.random() < 0.6
    plan.bumps_epochs = random.random() < 0.5
    plan.caps_transactions = not plan.bumps_epochs and random.random() < 0.4
    if plan.verifies and random.random() < 0.25:
        plan.config |= _ID_EXPIRATION
