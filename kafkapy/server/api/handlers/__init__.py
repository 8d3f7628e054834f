"""The served APIs: one table, and one module for each API.

Dispatch, ApiVersions, metrics names and docs/reference/apis.md come from `SERVED`;
`server.api.handler_table` builds the handlers. Handlers never import each other; `handler_support`
has shared functions.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ApiError
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import request_class, response_class
from kafkapy.server.api.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_share_group_offsets,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    controlled_shutdown,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_share_group_offsets,
    delete_share_group_state,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_share_group_offsets,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    expire_delegation_token,
    fetch,
    find_coordinator,
    get_telemetry_subscriptions,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    initialize_share_group_state,
    join_group,
    leader_and_isr,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    push_telemetry,
    read_share_group_state,
    read_share_group_state_summary,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    stop_replica,
    sync_group,
    txn_offset_commit,
    update_features,
    update_metadata,
    write_share_group_state,
    write_txn_markers,
)
from kafkapy.server.api.served import AnyApi, Api
from kafkapy.server.requests.outcomes import CLOSE_CONNECTION, CloseConnection

if TYPE_CHECKING:
    from kafkapy.protocol.schema import Message
    from kafkapy.server.api.served import Refuse

_ROWS: Final = (
    (ApiKey.PRODUCE, produce, 0, 13),
    (ApiKey.FETCH, fetch, 0, 18),
    (ApiKey.LIST_OFFSETS, list_offsets, 0, 11),
    (ApiKey.METADATA, metadata, 0, 13),
    (ApiKey.LEADER_AND_ISR, leader_and_isr, 0, 7),
    (ApiKey.STOP_REPLICA, stop_replica, 0, 4),
    (ApiKey.UPDATE_METADATA, update_metadata, 0, 8),
    (ApiKey.CONTROLLED_SHUTDOWN, controlled_shutdown, 0, 3),
    (ApiKey.OFFSET_COMMIT, offset_commit, 0, 10),
    (ApiKey.OFFSET_FETCH, offset_fetch, 0, 10),
    (ApiKey.FIND_COORDINATOR, find_coordinator, 0, 6),
    (ApiKey.JOIN_GROUP, join_group, 0, 9),
    (ApiKey.HEARTBEAT, heartbeat, 0, 4),
    (ApiKey.LEAVE_GROUP, leave_group, 0, 5),
    (ApiKey.SYNC_GROUP, sync_group, 0, 5),
    (ApiKey.DESCRIBE_GROUPS, describe_groups, 0, 5),
    (ApiKey.LIST_GROUPS, list_groups, 0, 5),
    (ApiKey.SASL_HANDSHAKE, sasl_handshake, 0, 1),
    (ApiKey.API_VERSIONS, api_versions, 0, 5),
    (ApiKey.CREATE_TOPICS, create_topics, 0, 7),
    (ApiKey.DELETE_TOPICS, delete_topics, 0, 6),
    (ApiKey.DELETE_RECORDS, delete_records, 0, 2),
    (ApiKey.INIT_PRODUCER_ID, init_producer_id, 0, 5),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, offset_for_leader_epoch, 0, 4),
    (ApiKey.ADD_PARTITIONS_TO_TXN, add_partitions_to_txn, 0, 5),
    (ApiKey.ADD_OFFSETS_TO_TXN, add_offsets_to_txn, 0, 4),
    (ApiKey.END_TXN, end_txn, 0, 5),
    (ApiKey.WRITE_TXN_MARKERS, write_txn_markers, 0, 1),
    (ApiKey.TXN_OFFSET_COMMIT, txn_offset_commit, 0, 6),
    (ApiKey.DESCRIBE_ACLS, describe_acls, 0, 3),
    (ApiKey.CREATE_ACLS, create_acls, 0, 3),
    (ApiKey.DELETE_ACLS, delete_acls, 0, 3),
    (ApiKey.DESCRIBE_CONFIGS, describe_configs, 0, 4),
    (ApiKey.ALTER_CONFIGS, alter_configs, 0, 2),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, alter_replica_log_dirs, 0, 2),
    (ApiKey.DESCRIBE_LOG_DIRS, describe_log_dirs, 0, 4),
    (ApiKey.SASL_AUTHENTICATE, sasl_authenticate, 0, 2),
    (ApiKey.CREATE_PARTITIONS, create_partitions, 0, 3),
    (ApiKey.CREATE_DELEGATION_TOKEN, create_delegation_token, 0, 3),
    (ApiKey.RENEW_DELEGATION_TOKEN, renew_delegation_token, 0, 2),
    (ApiKey.EXPIRE_DELEGATION_TOKEN, expire_delegation_token, 0, 2),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, describe_delegation_token, 0, 3),
    (ApiKey.DELETE_GROUPS, delete_groups, 0, 2),
    (ApiKey.ELECT_LEADERS, elect_leaders, 0, 2),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs, 0, 1),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, alter_partition_reassignments, 0, 0),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, list_partition_reassignments, 0, 0),
    (ApiKey.OFFSET_DELETE, offset_delete, 0, 0),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, describe_client_quotas, 0, 1),
    (ApiKey.ALTER_CLIENT_QUOTAS, alter_client_quotas, 0, 1),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, describe_user_scram_credentials, 0, 0),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, alter_user_scram_credentials, 0, 0),
    (ApiKey.ALTER_PARTITION, alter_partition, 0, 3),
    (ApiKey.UPDATE_FEATURES, update_features, 0, 2),
    (ApiKey.DESCRIBE_CLUSTER, describe_cluster, 0, 2),
    (ApiKey.DESCRIBE_PRODUCERS, describe_producers, 0, 0),
    (ApiKey.DESCRIBE_TRANSACTIONS, describe_transactions, 0, 0),
    (ApiKey.LIST_TRANSACTIONS, list_transactions, 0, 1),
    (ApiKey.ALLOCATE_PRODUCER_IDS, allocate_producer_ids, 0, 0),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, consumer_group_heartbeat, 0, 1),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, consumer_group_describe, 0, 1),
    (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, get_telemetry_subscriptions, 0, 0),
    (ApiKey.PUSH_TELEMETRY, push_telemetry, 0, 0),
    (ApiKey.LIST_CONFIG_RESOURCES, list_config_resources, 0, 1),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, describe_topic_partitions, 0, 0),
    (ApiKey.SHARE_GROUP_HEARTBEAT, share_group_heartbeat, 1, 1),
    (ApiKey.SHARE_GROUP_DESCRIBE, share_group_describe, 1, 1),
    (ApiKey.SHARE_FETCH, share_fetch, 1, 2),
    (ApiKey.SHARE_ACKNOWLEDGE, share_acknowledge, 1, 2),
    (ApiKey.INITIALIZE_SHARE_GROUP_STATE, initialize_share_group_state, 0, 0),
    (ApiKey.READ_SHARE_GROUP_STATE, read_share_group_state, 0, 0),
    (ApiKey.WRITE_SHARE_GROUP_STATE, write_share_group_state, 0, 1),
    (ApiKey.DELETE_SHARE_GROUP_STATE, delete_share_group_state, 0, 0),
    (ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, read_share_group_state_summary, 0, 1),
    (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, describe_share_group_offsets, 0, 1),
    (ApiKey.ALTER_SHARE_GROUP_OFFSETS, alter_share_group_offsets, 0, 0),
    (ApiKey.DELETE_SHARE_GROUP_OFFSETS, delete_share_group_offsets, 0, 0),
)


def _api(key: ApiKey, module: ModuleType, min_version: int, max_version: int) -> AnyApi:
    request = request_class(key)
    name = request.__name__.removesuffix("Request")
    refuse = getattr(module, "refuse", None) or _top_level_refusal(response_class(key))
    return Api(name, min_version, max_version, request, refuse)


def _top_level_refusal(response: type[Message]) -> Refuse[Message, Message]:
    """The refusal of APIs with a top-level error code. Other APIs close the connection."""

    def refuse(request: Message, error: ApiError, version: int) -> Message | CloseConnection:
        response_message = response()
        if not hasattr(response_message, "error_code"):
            return CLOSE_CONNECTION
        response_message.error_code = error.code
        return response_message

    return refuse


SERVED: Final[dict[int, AnyApi]] = {int(row[0]): _api(*row) for row in _ROWS}
