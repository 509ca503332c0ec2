"""Type changes of DATE, DATETIME, TIMESTAMP and TIME."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.values import civil, temporal
from airflow_provider_cdc.core.values.certain import Step, Uncertain
from airflow_provider_cdc.core.values.texts import fitted

_END = (civil.LAST_DAY + 1) * civil.DAY


def moments(values: pa.Array, step: Step) -> pa.Array:
    """Change between DATE and DATETIME, and the fraction digits."""
    if pa.types.is_string(values.type) or pa.types.is_string(step.target):
        return _kept_as_text(values, step)
    micros = values.cast(pa.timestamp("us", getattr(values.type, "tz", None))).view(pa.int64())
    if step.new.name == "date":
        micros = shortened(micros, 0, step)
        return _multiple(micros, civil.DAY, 0).view(pa.timestamp("us")).cast(pa.date32())
    return shortened(micros, step.new.length or 0, step).view(step.target)


def shortened(micros: pa.Array, digits: int, step: Step) -> pa.Array:
    """Drop fraction digits of a second, half away from zero where the server rounds."""
    unit: int = 10 ** (6 - digits)
    if unit == 1:
        return micros
    result = _multiple(micros, unit, unit // 2 if step.fractions == "round" else 0)
    if (pc.max(result).as_py() or 0) >= _END:
        raise Uncertain("a moment is rounded beyond year 9999")
    return result


def times(values: pa.Array, step: Step) -> pa.Array:
    """Change the fraction digits of TIME, which is kept as text."""
    micros = pa.array([None if text is None else civil.duration(text) for text in values.to_pylist()], pa.int64())
    unit: int = 10 ** (6 - (step.new.length or 0))
    amounts = _multiple(pc.abs(micros), unit, unit // 2 if step.fractions == "round" else 0)
    signed = pc.if_else(pc.less(micros, 0), pc.negate(amounts), amounts)
    return temporal.time_texts(signed, step.new.length or 0)


def _kept_as_text(values: pa.Array, step: Step) -> pa.Array:
    """Keep dates as text (option ``zero_dates``) where nothing is converted but zeros appended."""
    digits = step.new.length or 0
    if values.type != step.target or step.old.name != step.new.name or digits < (step.old.length or 0):
        raise Uncertain("dates are kept as text")
    missing = digits - (step.old.length or 0)
    point = "." if missing and not step.old.length else ""
    return pc.binary_join_element_wise(values, point + "0" * missing, "")


def _multiple(numbers: pa.Array, unit: int, add: int) -> pa.Array:
    """Return the multiple of ``unit`` at or below each number, after ``add`` was added to it."""
    raised = pc.add(numbers, add)
    rest = pc.subtract(raised, pc.multiply(pc.divide(raised, unit), unit))
    floored = pc.if_else(pc.less(rest, 0), pc.add(rest, unit), rest)
    return pc.subtract(raised, floored)


def _date_text(values: pa.Array, step: Step) -> pa.Array:
    return fitted(values.cast(pa.string()), step)


def _moment_text(values: pa.Array, step: Step) -> pa.Array:
    if pa.types.is_string(values.type):
        return fitted(values, step)
    return fitted(temporal.moment_texts(values, step.old.length or 0), step)


STEPS: dict[tuple[str, str], Callable[[pa.Array, Step], pa.Array]] = {
    **{(old, new): moments for old in ("date", "datetime") for new in ("date", "datetime")},
    ("timestamp", "timestamp"): moments,  # to and from the others the session's time zone decides
    ("date", "text"): _date_text,
    ("datetime", "text"): _moment_text,
    ("time", "time"): times,
    ("time", "text"): fitted,
}
