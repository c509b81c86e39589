"""Field values: many numbers of a card in one call to the driver, each with its own answer."""

from __future__ import annotations

from typing import Any

from gpu_dash.gpu.card import NotOffered
from gpu_dash.gpu.nvml_driver import NvmlDriver, known

_VALUE_OF_TYPE = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")

Field = int | tuple[int, int]
"""A field's number, or its number and its scope."""


def number_in(value: Any, kind: int) -> float | None:
    """The member of NVML's union that its type names; ``None`` if the driver does not know it."""
    return known(getattr(value, _VALUE_OF_TYPE[kind]))


def read_fields(driver: NvmlDriver, handle: Any, fields: list[Field]) -> dict[int, float]:
    """The values that are known, by field number.

    Fields that the card does not offer are taken out of the list.

    Raises:
        NotOffered: no field is left.
        ReadFailed: a field that is offered could not be read.
    """
    if not fields:
        raise NotOffered("nvmlDeviceGetFieldValues")
    values: dict[int, float] = {}
    answers = driver.call("nvmlDeviceGetFieldValues", handle, fields)
    for field, answer in zip(list(fields), answers, strict=True):
        try:
            driver.check_field(answer.nvmlReturn, f"field {answer.fieldId}")
        except NotOffered:
            fields.remove(field)
            continue
        value = number_in(answer.value, answer.valueType)
        if value is not None:
            values[answer.fieldId] = value
    return values
