"""RenewDelegationToken (key 39): prolongs a delegation token (KIP-48)."""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BYTES, INT16, INT32, INT64, Message, field


class RenewDelegationTokenRequest(Message, api=ApiKey.RENEW_DELEGATION_TOKEN):
    hmac: bytes = field(BYTES)
    renew_period_ms: int = field(INT64)


class RenewDelegationTokenResponse(Message, api=ApiKey.RENEW_DELEGATION_TOKEN):
    error_code: int = field(INT16)
    expiry_timestamp_ms: int = field(INT64)
    throttle_time_ms: int = field(INT32)
