"""AlterUserScramCredentials (key 51): sets or removes SCRAM credentials (KIP-554)."""

from __future__ import annotations

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.schema import BYTES, INT8, INT16, INT32, STRING, Message, Struct, array, field


class ScramCredentialDeletion(Struct):
    name: str = field(STRING)
    mechanism: int = field(INT8)


class ScramCredentialUpsertion(Struct):
    name: str = field(STRING)
    mechanism: int = field(INT8)
    iterations: int = field(INT32)
    salt: bytes = field(BYTES)
    salted_password: bytes = field(BYTES)


class AlterUserScramCredentialsRequest(Message, api=ApiKey.ALTER_USER_SCRAM_CREDENTIALS):
    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResult(Struct):
    user: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable=True)


class AlterUserScramCredentialsResponse(Message, api=ApiKey.ALTER_USER_SCRAM_CREDENTIALS):
    throttle_time_ms: int = field(INT32)
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)
