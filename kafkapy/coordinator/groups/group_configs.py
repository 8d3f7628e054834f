"""Configs of single groups (`configs --entity-type groups`), which come before the broker's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

GroupConfigs: TypeAlias = Callable[[str], Mapping[str, str]]
"""The configs that are set for a group."""


def no_group_configs(group_id: str) -> Mapping[str, str]:
    """No group has configs of its own."""
    return {}


def int_config(configs: GroupConfigs, group_id: str, name: str, default: int) -> int:
    """A number of a group, or the broker's."""
    value = configs(group_id).get(name)
    return default if value is None else int(value)
