"""Which groups are coordinated here."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.registry import GroupRegistry, OffsetsPartition


def registry(loading: bool = False) -> GroupRegistry:
    made = GroupRegistry(1)
    made.partitions[0] = OffsetsPartition(leader_epoch=3, loading=loading)
    return made


def test_a_group_id_decides_first() -> None:
    nothing = GroupRegistry(1)
    nothing.active = False
    assert nothing.check("") is ErrorCode.INVALID_GROUP_ID
    assert nothing.check("", empty_id=True) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert nothing.check("x" * 40_000) is ErrorCode.INVALID_GROUP_ID


def test_then_who_leads_its_partition() -> None:
    assert GroupRegistry(1).check("g") is ErrorCode.NOT_COORDINATOR
    assert registry(loading=True).check("g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert registry().check("g") is ErrorCode.NONE


def test_groups_are_made_found_and_removed() -> None:
    groups = registry()
    assert groups.find("g") is None
    group = groups.get_or_create("g", 5)
    assert groups.find("g") is group is groups.get_or_create("g", 6)
    assert (group.partition, group.state_timestamp_ms, groups.leader_epoch(group)) == (0, 5, 3)
    assert list(groups.loaded_groups()) == [group]
    groups.remove(group)
    assert groups.find("g") is None


def test_groups_that_are_being_loaded_do_not_show() -> None:
    groups = registry(loading=True)
    groups.get_or_create("g", None)
    assert groups.loading
    assert list(groups.loaded_groups()) == []
