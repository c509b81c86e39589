"""A node of a compose file or a Kubernetes manifest → image, cards, mounts and ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpu_dash.server.paste.launch import PastedContainer
from gpu_dash.server.paste.variables import Variables

_GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "habana.ai/gaudi")


def container_of(node: Mapping[str, Any], variables: Variables) -> PastedContainer:
    """The container that a node of a compose file or a Kubernetes manifest describes."""
    image = node.get("image")
    if isinstance(image, dict):
        image = ":".join(str(image[key]) for key in ("repository", "tag") if key in image)
    return PastedContainer(
        image=variables.expand(str(image)) if image else None,
        gpus=_gpus(node),
        device_ids=tuple(_device_ids(node)),
        mounts=tuple(variables.expand(mount) for mount in _mounts(node)),
        ports=tuple(variables.expand(port) for port in _ports(node)),
    )


def _gpus(node: Mapping[str, Any]) -> str | None:
    resources = node.get("resources")
    if isinstance(resources, dict):
        for part in ("limits", "requests"):
            amounts = resources.get(part)
            if not isinstance(amounts, dict):
                continue
            for name in _GPU_RESOURCES:
                if name in amounts:
                    return str(amounts[name])
    if ids := list(_device_ids(node)):
        return ",".join(ids)
    for device in _reserved(node):
        if "count" in device:
            return f"count={device['count']}"
    asked = node.get("gpus")
    if isinstance(asked, str):
        return asked
    for entry in node.get("devices") or () if isinstance(node.get("devices"), list) else ():
        if "gpu=" in str(entry):
            return str(entry)
    return None


def _device_ids(node: Mapping[str, Any]) -> Iterator[str]:
    for device in _reserved(node):
        if isinstance(device.get("device_ids"), list):
            yield from map(str, device["device_ids"])
            return


def _reserved(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """``deploy.resources.reservations.devices`` of compose."""
    at: Any = node
    for key in ("deploy", "resources", "reservations"):
        at = at.get(key) or {} if isinstance(at, dict) else {}
    devices = at.get("devices") if isinstance(at, dict) else None
    for device in devices if isinstance(devices, list) else ():
        if isinstance(device, dict):
            yield device


def _mounts(node: Mapping[str, Any]) -> Iterator[str]:
    for key in ("volumes", "volumeMounts"):
        entries = node.get(key)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, str):
                yield entry
            elif isinstance(entry, dict):
                source = entry.get("source") or entry.get("name")
                target = entry.get("target") or entry.get("mountPath")
                if source and target:
                    yield f"{source}:{target}"


def _ports(node: Mapping[str, Any]) -> Iterator[str]:
    ports = node.get("ports")
    for port in ports if isinstance(ports, list) else ():
        if isinstance(port, str):
            yield port
        elif isinstance(port, dict) and "containerPort" in port:
            yield str(port["containerPort"])
        elif isinstance(port, dict) and "target" in port:
            yield (
                f"{port['published']}:{port['target']}"
                if "published" in port
                else str(port["target"])
            )
