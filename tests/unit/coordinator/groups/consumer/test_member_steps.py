"""Steps of one member that both protocols share."""

from __future__ import annotations

from kafkapy.coordinator.groups.consumer import member_steps
from kafkapy.coordinator.groups.consumer.log_writes import Changes
from tests.harness.cores.consumer_shell import ConsumerShell


def test_regular_expressions_are_matched_for_a_caller_with_rights_only() -> None:
    shell = ConsumerShell()
    shell.consumer("m", topics=None, regex="t.*")
    shell.topics.create("tt", 1)
    shell.advance(10_000)
    core, group = shell.coordinator._core, shell.consumers
    member_steps.update_member(core, Changes(group), "m", group.members["m"])
    assert group.regexes["t.*"].topics == {"t"}
    member_steps.update_member(core, Changes(group), "m", group.members["m"], lambda topic: True)
    assert group.regexes["t.*"].topics == {"t", "tt"}
