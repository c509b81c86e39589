"""The HTTP surface of an OpenAI-compatible server, as far as supervision needs it."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gpu_dash.model.errors import ServerError, UsageError
from gpu_dash.model.headers import Headers

if TYPE_CHECKING:
    import httpx

PROBE_TIMEOUT_S = 3.0


def normalize_base_url(text: str) -> str:
    """Scheme, host, port and path of a server without the one trailing ``/v1``.

    Raises:
        UsageError: it is no http or https URL.
    """
    url = text.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_usable = False
    if is_usable and (parts.username is not None or parts.password is not None):
        raise UsageError("the URL holds a user name or password; give a key with --api-key-env")
    if not is_usable:
        raise UsageError(f"{text!r} is not the URL of a server; write http://HOST:PORT")
    return url.removesuffix("/v1").rstrip("/")


def is_loopback(base_url: str) -> bool:
    """Whether a URL names this host; such requests go past any proxy."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class EndpointProbe:
    """Asks one server for health, metrics and models; every answer is a value, not a surprise.

    Args:
        base_url: without ``/v1``.
        api_key: sent as a bearer token where it is given.
        headers: further headers, which a gateway in front of it may want.
    """

    def __init__(
        self, base_url: str, api_key: str | None = None, headers: Headers | None = None
    ) -> None:
        self._base_url = base_url
        self._headers = dict(headers.pairs) if headers is not None else {}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._client: httpx.AsyncClient | None = None

    def _http(self) -> httpx.AsyncClient:
        import httpx

        if self._client is None:
            self._client = httpx.AsyncClient(
                headers=self._headers,
                timeout=PROBE_TIMEOUT_S,
                trust_env=not is_loopback(self._base_url),
            )
        return self._client

    async def trouble(self) -> str:
        """What is wrong with ``/health``, in words; empty when it answers 200 in time."""
        import httpx

        url = f"{self._base_url}/health"
        try:
            response = await self._http().get(url)
        except httpx.HTTPError:
            return f"{url} does not answer"
        return "" if response.status_code == 200 else f"{url} answers {response.status_code}"

    async def is_reachable(self) -> bool:
        """Whether ``/v1/models`` answers 200: for gateways that have no ``/health``."""
        import httpx

        try:
            response = await self._http().get(f"{self._base_url}/v1/models")
        except httpx.HTTPError:
            return False
        return response.status_code == 200

    async def version(self) -> str:
        """What ``/version`` says; empty if it says nothing."""
        import httpx

        try:
            response = await self._http().get(f"{self._base_url}/version")
            said: Any = response.json()
            return str(said["version"]) if response.status_code == 200 else ""
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return ""

    async def metrics_page(self) -> str | None:
        """The text of ``/metrics``; ``None`` if there is none or no answer in time."""
        import httpx

        try:
            response = await self._http().get(f"{self._base_url}/metrics")
        except httpx.HTTPError:
            return None
        return response.text if response.status_code == 200 else None

    async def models(self) -> list[str]:
        """The model ids of ``/v1/models``.

        Raises:
            ServerError: no answer, a refusal, or an answer that is not a list of models.
        """
        import httpx

        url = f"{self._base_url}/v1/models"
        try:
            response = await self._http().get(url)
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise ServerError(
                f"{url} does not answer ({reason}); check host and port, or start the server"
            ) from error
        if response.status_code in (401, 403):
            raise ServerError(
                f"{url} says {response.status_code}: the key is missing or wrong; "
                "name its variable with --api-key-env"
            )
        try:
            data: Any = response.json()
            return [str(model["id"]) for model in data["data"]]
        except (ValueError, KeyError, TypeError) as error:
            raise ServerError(
                f"{url} answered {response.status_code} and no list of models; "
                "is the base URL right (it ends in at most one /v1)?"
            ) from error

    async def close(self) -> None:
        """Close the connections; safe to call twice."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None
