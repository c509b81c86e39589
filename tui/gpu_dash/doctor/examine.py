"""All checks of one endpoint, in the order in which a request meets them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gpu_dash.doctor.address import check_address
from gpu_dash.doctor.check import Check, CheckStatus, ok
from gpu_dash.doctor.endpoint import Endpoint, Examination
from gpu_dash.doctor.key import check_key, without_key
from gpu_dash.server.endpoint import normalize_base_url


def examine_endpoint(
    url: str, model: str | None, key_variable: str | None, key: str | None
) -> Iterator[Check]:
    """Check an endpoint; each check is said as soon as it is known.

    Args:
        url: with or without one ``/v1``.
        model: the id; the first that the endpoint lists if left out.
        key_variable: environment variable of the key.
        key: what it holds; it stands in no check.

    Raises:
        UsageError: it is no URL.
    """
    base_url = normalize_base_url(url)
    key_check, usable = check_key(key_variable, key)
    for check in _checks(base_url, model, key_check, usable):
        yield msgspec.structs.replace(
            check,
            detail=without_key(check.detail, key, usable),
            action=None if check.action is None else without_key(check.action, key, usable),
        )


def _checks(
    base_url: str, model: str | None, key_check: Check, usable: str | None
) -> Iterator[Check]:
    yield ok("url", f"{base_url}/v1")
    yield key_check
    is_reachable = True
    for check in check_address(base_url):
        yield check
        is_reachable = is_reachable and check.status is not CheckStatus.FAIL
    if not is_reachable:
        return
    endpoint = Endpoint(base_url, usable)
    try:
        yield from Examination(endpoint, model, has_key=usable is not None).checks()
    finally:
        endpoint.close()
