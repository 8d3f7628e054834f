"""The share partitions of a group: initialized when a topic is subscribed, deleted with their group
or by an administrator. The share coordinator has their state; the group's record lists them.

Kafka: `GroupMetadataManager.initializeShareGroupState` and its neighbours.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups.consumer.assignment import (
    TopicIdPartition,
    assignment_of,
    partitions_of,
)
from kafkapy.coordinator.groups.consumer.group_epoch import bump_epoch
from kafkapy.coordinator.groups.consumer.log_writes import Answer, Changes, store
from kafkapy.coordinator.groups.consumer.records import RecordType, ShareStates
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import Group
from kafkapy.coordinator.groups.share.messages import (
    AlterShareOffsets,
    DeleteShareOffsets,
    ListShareStates,
    ShareStatesDeleted,
    ShareStatesResult,
    StateRequest,
)
from kafkapy.coordinator.groups.share.share_group import (
    ShareGroup,
    with_initialized,
    with_used_names,
    without_topics,
)


def find(
    core: Core, group_id: str, *, may_create: bool = False, kind: str = "Group"
) -> tuple[Group | None, ShareGroup]:
    """Find a group; a new one is not registered yet. `kind` begins the error message.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND, also for a group of another protocol.
    """
    group = core.registry.find(group_id)
    if group is not None:
        if not isinstance(group.consumer, ShareGroup):
            message = f"Group {group_id} is not a share group."
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)
        return group, group.consumer
    if not may_create:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"{kind} {group_id} not found.")
    return None, ShareGroup(group_id)


def register(core: Core, group: Group | None, shares: ShareGroup) -> Group:
    """Register the group if it is new, and return it."""
    if group is None:
        group = core.registry.get_or_create(shares.group_id, core.clock.time_ms())
        group.consumer = shares
    return group


# In a heartbeat.


def request_initialization(core: Core, changes: Changes, group: ShareGroup) -> None:
    """Request the state of partitions that have none, when the log has this step. Otherwise a
    replaced coordinator that is not aware of its successor could initialize them in an epoch of its
    own. If that epoch is later than the successor's, the group's progress since would be lost.

    States whose deletion did not end are initialized again: their members joined later, in a later
    epoch."""
    wanted = group.uninitialized() - group.requested_epochs.keys()
    if not wanted:
        return
    # Written even if it changes nothing: its replication shows that this broker still leads.
    initializing = set(partitions_of(group.states.initializing)) | wanted
    names = {**group.states.names, **{t.topic_id: t.name for t in group.topics.values()}}
    states = group.states._replace(
        initializing=assignment_of(initializing),
        deleting=group.states.deleting - {partition.topic_id for partition in wanted},
        names=names,
    )
    changes.put(RecordType.SHARE_STATES, states)
    group.requested_epochs |= dict.fromkeys(wanted, group.epoch)
    request = StateRequest(group.group_id, group.epoch, assignment_of(wanted))

    def stored(error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            core.state_requests.append(request)
        else:
            _remove_requested(group, wanted)

    changes.on_stored = stored


def remove_deleted_topics(core: Core, changes: Changes, group: ShareGroup) -> None:
    """Remove the share partitions of deleted topics. The share coordinator removes them as well,
    and refuses requests to delete them."""
    known = {*group.states.initializing, *group.states.initialized, *group.states.deleting}
    deleted = frozenset(topic_id for topic_id in known if core.topics.name_of(topic_id) is None)
    if deleted:
        changes.put(RecordType.SHARE_STATES, without_topics(group.states, deleted))


def states_initialized(
    core: Core, request: StateRequest, error: ErrorCode, known_epoch: int = 0
) -> None:
    """Handle the share coordinator's answer to a request. After an error, a later heartbeat
    requests the partitions again. So it does if the group is being loaded, because its state is
    incomplete. An answer from before a load does not count for a later request, which may still
    initialize the partitions again.

    With FENCED_STATE_EPOCH, the share coordinator has all states, the latest of `known_epoch`. If
    the group is in an earlier epoch, its log has lost its end. Its members go on with those states,
    and the group in that epoch. In Kafka they wait until other changes have raised its epoch."""
    if core.registry.check(request.group_id) is not ErrorCode.NONE:
        return
    group = core.registry.find(request.group_id)
    if group is None or not isinstance(group.consumer, ShareGroup):
        return
    shares, epoch = group.consumer, request.state_epoch
    wanted = set(partitions_of(request.partitions))
    partitions = {each for each in wanted if shares.requested_epochs.get(each) == epoch}
    _remove_requested(shares, partitions)
    is_behind = error is ErrorCode.FENCED_STATE_EPOCH and known_epoch > shares.epoch
    if error is not ErrorCode.NONE and not is_behind:
        core.log.warning(
            "[GroupId %s] The state of %d share partitions could not be initialized: %s",
            request.group_id,
            len(partitions),
            error.name,
        )
        return
    partitions &= set(partitions_of(shares.states.initializing))  # others were deleted meanwhile
    if not partitions:
        return
    changes = Changes(shares)
    if is_behind:
        core.log.warning(
            "[GroupId %s] The log has lost the end of the group, which is in epoch %d: the states"
            " of its share partitions are of epoch %d. The group goes on with them",
            request.group_id,
            shares.epoch,
            known_epoch,
        )
        changes.put(RecordType.GROUP_EPOCH, known_epoch)
    changes.put(RecordType.SHARE_STATES, with_initialized(shares.states, partitions))
    store(core, group, changes)


def _remove_requested(group: ShareGroup, partitions: set[TopicIdPartition]) -> None:
    for partition in partitions:
        del group.requested_epochs[partition]


# For administrators.


def list_states(core: Core, token: Token, request: ListShareStates) -> None:
    """The share partitions whose state the share coordinator has."""
    try:
        _, shares = _find_loaded(core, request.group_id)
    except ApiError as refusal:
        core.outbox.reply(token, ShareStatesResult(refusal.code, refusal.message))
        return
    core.outbox.reply(token, ShareStatesResult(partitions=shares.states.initialized))


def alter_offsets(core: Core, token: Token, request: AlterShareOffsets) -> None:
    """Start a new epoch, in which the share coordinator reinitializes the partitions."""
    try:
        group, shares = _find_loaded(core, request.group_id, may_create=True)
        _check_empty(shares)
    except ApiError as refusal:
        core.outbox.reply(token, ShareStatesResult(refusal.code, refusal.message))
        return
    group = register(core, group, shares)
    changes = Changes(shares)
    bump_epoch(changes)
    changes.put(RecordType.TARGET_EPOCH, shares.epoch)
    wanted = {TopicIdPartition(t, i) for t, rows in request.partitions.items() for i in rows}
    initializing = set(partitions_of(shares.states.initializing)) | wanted
    names = {**shares.states.names, **{t: core.topics.name_of(t) or "" for t in request.partitions}}
    states = shares.states._replace(initializing=assignment_of(initializing), names=names)
    changes.put(RecordType.SHARE_STATES, states)
    result = ShareStatesResult(state_epoch=shares.epoch, partitions=assignment_of(wanted))
    store(core, group, changes, Answer(token, result, ShareStatesResult))


def states_altered(core: Core, token: Token, request: StateRequest) -> None:
    """Record that the share coordinator has reinitialized these partitions. Until the log has this
    record, the next coordinator would initialize them again, at no particular offset; so would the
    heartbeat of a member that has joined meanwhile."""
    initialized = set(partitions_of(request.partitions))
    try:
        group, shares = _find_loaded(core, request.group_id)
        if not initialized.issubset(partitions_of(shares.states.initialized)):
            _check_empty(shares)
        is_initializing = initialized.issubset(partitions_of(shares.states.initializing))
        if not is_initializing or initialized & shares.requested_epochs.keys():
            message = "The share partitions were initialized again or deleted meanwhile."
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, message)
    except ApiError as refusal:
        core.outbox.reply(token, ShareStatesResult(refusal.code, refusal.message))
        return
    assert group is not None, "only a group that exists is altered"
    changes = Changes(shares)
    changes.put(RecordType.SHARE_STATES, with_initialized(shares.states, initialized))
    store(core, group, changes, Answer(token, ShareStatesResult(), ShareStatesResult))


def delete_offsets(core: Core, token: Token, request: DeleteShareOffsets) -> None:
    """Mark topics whose states the share coordinator then deletes."""
    try:
        group, shares = _find_loaded(core, request.group_id)
        _check_empty(shares)
        if not core.topics.is_known:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)  # topics would look deleted
        if shares.requested_epochs:  # the share coordinator may initialize them after the deletion
            message = "Share partitions of the group are being initialized."
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, message)
    except ApiError as refusal:
        core.outbox.reply(token, ShareStatesResult(refusal.code, refusal.message))
        return
    assert group is not None, "only a group that exists is deleted"
    changes = Changes(shares)
    remove_deleted_topics(core, changes, shares)
    states = shares.states
    known = _all_partitions(core, states)
    wanted = known if request.topic_ids is None else {
        topic_id: known[topic_id] for topic_id in request.topic_ids if topic_id in known
    }  # fmt: skip
    if wanted:
        kept = without_topics(states, frozenset(wanted))
        marked = kept._replace(deleting=states.deleting | wanted.keys(), names=states.names)
        changes.put(RecordType.SHARE_STATES, marked)
        shares.deleting_topics |= wanted.keys()

    def stored(error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:  # then nothing is deleted
            shares.deleting_topics -= wanted.keys()

    changes.on_stored = stored
    result = ShareStatesResult(partitions=wanted)
    store(core, group, changes, Answer(token, result, ShareStatesResult))


def _all_partitions(core: Core, states: ShareStates) -> dict[Uuid, frozenset[int]]:
    """All partitions whose state the share coordinator may have."""
    known = {*partitions_of(states.initializing), *partitions_of(states.initialized)}
    for topic_id in states.deleting:
        name = core.topics.name_of(topic_id)
        topic = None if name is None else core.topics.find(name)
        if topic is not None:
            known |= {TopicIdPartition(topic_id, index) for index in range(topic.num_partitions)}
    return dict(assignment_of(known))


def states_deleted(core: Core, token: Token, request: ShareStatesDeleted) -> None:
    """Record that the share coordinator has deleted the states of these topics."""
    try:
        group, shares = _find_loaded(core, request.group_id)
    except ApiError as refusal:
        core.outbox.reply(token, ShareStatesResult(refusal.code, refusal.message))
        return
    assert group is not None, "only a group that exists is deleted"
    changes = Changes(shares)
    deleted = frozenset(request.topic_ids)
    shares.deleting_topics -= {*deleted, *request.failed}
    if deleted:
        kept = shares.states._replace(deleting=shares.states.deleting - deleted)
        changes.put(RecordType.SHARE_STATES, with_used_names(kept))
    store(core, group, changes, Answer(token, ShareStatesResult(), ShareStatesResult))


def _find_loaded(
    core: Core, group_id: str, *, may_create: bool = False
) -> tuple[Group | None, ShareGroup]:
    """Find a share group that is coordinated here.

    Raises:
        ApiError: the group is not coordinated here, still loading, or not a share group.
    """
    error = core.registry.check(group_id)
    if error is not ErrorCode.NONE:
        raise ApiError(error)
    return find(core, group_id, may_create=may_create)


def _check_empty(group: ShareGroup) -> None:
    if group.members:
        raise ApiError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
