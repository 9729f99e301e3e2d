"""Which programs may use the routes under /v1, and in whose turn their takes are generated.

With DIA_TOKENS, those that send one of these as `Authorization: Bearer ...`. Without, all on this
machine, unless the page asks for logins (DIA_LOGIN), and from elsewhere all if DIA_OPEN_API is on.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated

from fastapi import HTTPException, Security, WebSocket, WebSocketException
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import HTTPConnection

from dia_demo.server.address import Address
from dia_demo.services.people import Caller, Visitor, network_of, token_hash
from dia_demo.services.settings import Settings

NO_TOKEN = "This server needs a token: send it in the header Authorization, as Bearer TOKEN."
WRONG_TOKEN = "This token is not one of the server's: ask whoever runs it for a token."
CLOSED = (
    "This server listens beyond its machine and has no tokens, so its routes for programs are "
    "closed: set DIA_TOKENS, or DIA_OPEN_API=on to open them to everybody."
)
NO_LOGIN = (
    "The page of this server asks for a login, and there are no tokens for programs, so their "
    "routes are closed: set DIA_TOKENS, or DIA_OPEN_API=on to open them to everybody."
)
POLICY_VIOLATION = 1008

_bearer = HTTPBearer(auto_error=False, description="One of DIA_TOKENS, if the server has any.")


class Access:
    """Who may use the routes for programs of an application that listens at `address`. is_public:
    everybody beyond this machine may, and nobody can be told from others."""

    def __init__(self, settings: Settings, address: Address) -> None:
        self._digests = [_digest(token) for token in settings.tokens]
        # Behind a proxy, whoever comes from this machine may be anybody.
        is_local = address.is_loopback and not settings.logins
        self._closed = NO_LOGIN if settings.logins else CLOSED
        self._is_open = not settings.tokens and (settings.open_api or is_local)
        self.is_public = self._is_open and not address.is_loopback

    def token_of(self, connection: HTTPConnection) -> str | None:
        """The token of a request if it is one of the server's. Without tokens, what clients send in
        its place means nothing."""
        kind, _, token = connection.headers.get("authorization", "").partition(" ")
        digest = _digest(token := token.strip())
        # Every comparison takes the same time, and so do all together.
        matches = [hmac.compare_digest(digest, known) for known in self._digests]
        return token if kind.lower() == "bearer" and any(matches) else None

    def refusal_of(self, connection: HTTPConnection) -> str | None:
        """Why a request is refused; None if it is not."""
        if self._is_open or self.token_of(connection) is not None:
            return None
        if not self._digests:
            return self._closed
        return WRONG_TOKEN if "authorization" in connection.headers else NO_TOKEN


def access_of(connection: HTTPConnection) -> Access:
    """That of the application which a request reached."""
    return connection.app.state.access


async def require_token(
    connection: HTTPConnection,
    _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> None:
    """A dependency of routes. Answers 401 to whoever may not use them."""
    if message := access_of(connection).refusal_of(connection):
        raise HTTPException(401, message, {"WWW-Authenticate": "Bearer"})


async def require_websocket_token(socket: WebSocket) -> None:
    """The same of WebSockets, whose connection is refused."""
    if message := access_of(socket).refusal_of(socket):
        raise WebSocketException(POLICY_VIOLATION, message)


def caller_of(connection: HTTPConnection) -> Caller:
    """The cancel flag of a request's run, for the visitor who made it: the address, as the server
    or a proxy on this machine sees it, and the token, if the server has any."""
    address = network_of(connection.client.host) if connection.client else ""
    token = access_of(connection).token_of(connection)
    return Caller(Visitor(address, token=token_hash(token) if token else ""))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
