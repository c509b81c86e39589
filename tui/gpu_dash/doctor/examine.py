"""All checks of one endpoint, in the order in which a request meets them."""

from __future__ import annotations

import msgspec

from gpu_dash.doctor.address import check_address
from gpu_dash.doctor.check import Check, any_failed, ok
from gpu_dash.doctor.endpoint import Endpoint, Examination
from gpu_dash.doctor.key import check_key, without_key
from gpu_dash.server.endpoint import normalize_base_url


def examine_endpoint(
    url: str, model: str | None, key_variable: str | None, key: str | None
) -> list[Check]:
    """Check an endpoint.

    Args:
        url: with or without one ``/v1``.
        model: the id; the first that the endpoint lists if left out.
        key_variable: environment variable of the key.
        key: what it holds; it stands in no check.

    Raises:
        UsageError: it is no URL.
    """
    base_url = normalize_base_url(url)
    checks = [ok("url", f"{base_url}/v1")]
    key_check, usable = check_key(key_variable, key)
    checks.append(key_check)
    address = check_address(base_url)
    checks += address
    if not any_failed(address):
        endpoint = Endpoint(base_url, usable)
        try:
            checks += Examination(endpoint, model, has_key=usable is not None).checks()
        finally:
            endpoint.close()
    return [
        msgspec.structs.replace(
            check,
            detail=without_key(check.detail, key, usable),
            action=None if check.action is None else without_key(check.action, key, usable),
        )
        for check in checks
    ]
