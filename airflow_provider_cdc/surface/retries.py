# SPDX-License-Identifier: Apache-2.0
"""Choose the delay before a retry by what went wrong."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.errors import BusyError, CdcError, ConfigurationError, Transient

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context, RetryDecision, RetryPolicy
else:
    try:
        from airflow.providers.common.compat.sdk import RetryDecision, RetryPolicy
    except ImportError:  # Airflow before 3.3: the module can be imported, a policy cannot be made
        RetryDecision, RetryPolicy = None, object


class CdcRetryPolicy(RetryPolicy):
    """Retry soon where another run works on the pipeline, and later each time where a service does not answer.

    Errors that cannot pass fail a task at once with and without it. Other errors follow the task's own settings.

    :param busy: delay after an error that another run of the pipeline causes.
    :param first: delay after the first error of a service; each further try doubles it.
    :param longest: bound of that delay.
    :raises ConfigurationError: Airflow is older than 3.3 and asks no policy.
    """

    def __init__(
        self,
        busy: timedelta = timedelta(seconds=30),
        first: timedelta = timedelta(seconds=30),
        longest: timedelta = timedelta(minutes=15),
    ) -> None:
        if RetryDecision is None:
            raise ConfigurationError(["CdcRetryPolicy needs Airflow 3.3: leave retry_policy out, and set retry_delay"])
        self.busy = busy
        self.first = first
        self.longest = longest

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        """Return whether and when to retry."""
        error = _cause(exception)
        if error is None:
            return RetryDecision.default()
        if not isinstance(error, Transient):
            return RetryDecision.fail(error.code)
        if isinstance(error, BusyError):
            return RetryDecision.retry(self.busy, error.code)
        doublings = min(max(try_number, 1) - 1, 30)
        return RetryDecision.retry(min(self.longest, self.first * 2**doublings), error.code)

    def serialize(self) -> dict[str, Any]:
        """Return plain JSON data."""
        names = ("busy", "first", "longest")
        return {name: getattr(self, name).total_seconds() for name in names}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> CdcRetryPolicy:
        """Rebuild from :meth:`serialize`."""
        return cls(**{name: timedelta(seconds=seconds) for name, seconds in data.items()})


def _cause(exception: BaseException) -> CdcError | None:
    """Return the error of this package behind one of Airflow's."""
    seen: BaseException | None = exception
    while seen is not None and not isinstance(seen, CdcError):
        seen = seen.__cause__
    return seen
