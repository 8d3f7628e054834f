"""The context that a handler gets with a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.metadata.client_metrics import ClientInformation
from kafkapy.server.requests.outcomes import ANONYMOUS
from kafkapy.server.requests.request_handler import UNKNOWN_SOFTWARE

if TYPE_CHECKING:
    from kafkapy.protocol.headers import RequestHeader
    from kafkapy.server.requests.request_handler import Caller


class RequestContext:
    """The context of one request: the caller's principal (`User:alice`), the listener, the version,
    and the connection. `is_token`: the caller has authenticated with a delegation token.
    """

    __slots__ = ("caller", "client_host", "header", "is_token", "listener", "principal", "version")

    def __init__(
        self,
        header: RequestHeader,
        client_host: str,
        listener: str,
        principal: str = ANONYMOUS,
        is_token: bool = False,
        caller: Caller | None = None,
    ) -> None:
        self.header = header
        self.version = header.api_version
        self.client_host = client_host
        self.listener = listener
        self.principal = principal
        self.is_token = is_token
        self.caller = caller

    def client_information(self) -> ClientInformation:
        """The caller's properties, by which metrics subscriptions select clients. The instance id
        is empty, because the request has it.
        """
        software, peer = UNKNOWN_SOFTWARE, ""
        if self.caller is not None:
            software, peer = self.caller.client_software, self.caller.peer
        return ClientInformation(
            client_instance_id="",
            client_id=self.header.client_id or "",
            client_software_name=software[0],
            client_software_version=software[1],
            client_source_address=self.client_host,
            client_source_port=peer.rpartition(":")[2],
        )
