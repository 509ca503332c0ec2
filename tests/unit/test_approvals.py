# SPDX-License-Identifier: Apache-2.0
"""A decision names its change: what was denied is never carried out by a command that is repeated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_cdc.batch.approvals import _change_to_decide, _order
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.timeline.asked_changes import Answer, AskedChange
from airflow_provider_cdc.ledger import TaskTry

TRUNCATE = AskedChange("100", "shop", "t", "on_truncate", "TRUNCATE TABLE t")
ADD = AskedChange("200", "shop", "t", "on_add_column", "ALTER TABLE t ADD COLUMN w INT")
DROP = AskedChange("300", "shop", "t", "on_drop_table", "DROP TABLE t")
OTHER = AskedChange("100", "shop", "u", "on_truncate", "TRUNCATE TABLE u")
RUN = "dag/run 1/approve/-1"


def denied(item: AskedChange, at: str) -> AskedChange:
    return replace(item, answer=Answer.DENY, at=at)


def approved(item: AskedChange, at: str, order: str = "") -> AskedChange:
    return replace(item, answer=Answer.APPLY, at=at, order=order)


def to_decide(*asked: AskedChange, deny: bool = False, change: str = "", order: str = "") -> AskedChange:
    return _change_to_decide([*asked, OTHER], "shop.t", Answer.DENY if deny else Answer.APPLY, change, order)


def refused(*asked: AskedChange, deny: bool = False, change: str = "") -> str:
    with pytest.raises(DataError) as raised:
        to_decide(*asked, deny=deny, change=change)
    return raised.value.code


def test_the_oldest_change_that_waits_is_decided() -> None:
    assert to_decide(TRUNCATE, ADD) == TRUNCATE
    assert to_decide(approved(TRUNCATE, "1"), ADD, DROP) == ADD
    assert to_decide(TRUNCATE, ADD, change=ADD.id) == ADD


def test_an_approval_that_is_repeated_carries_out_nothing_that_was_denied() -> None:
    done = approved(ADD, "2")
    assert to_decide(denied(TRUNCATE, "1"), done) == done  # it has its answer: nothing is decided
    assert refused(approved(ADD, "1"), denied(TRUNCATE, "2")) == "approve.nothing_waits"
    assert refused(denied(TRUNCATE, "1")) == "approve.nothing_waits"


def test_a_denied_change_is_carried_out_by_its_name() -> None:
    item = denied(TRUNCATE, "1")
    assert to_decide(item, approved(ADD, "2"), change=TRUNCATE.id) == item


def test_a_denial_that_is_repeated_denies_no_other_change() -> None:
    done = denied(TRUNCATE, "2")
    assert to_decide(approved(ADD, "1"), done, deny=True) == done
    assert refused(done, approved(ADD, "3"), deny=True) == "approve.nothing_waits"


def test_a_named_change_is_decided_once() -> None:
    done = approved(ADD, "1")
    assert to_decide(done, DROP, change=ADD.id) == done
    assert refused(done, deny=True, change=ADD.id) == "approve.carried_out"
    assert refused(ADD, change=OTHER.id) == "approve.other_change"


def test_a_task_that_is_tried_again_approves_no_change_that_came_since() -> None:
    done = approved(ADD, "1", RUN)
    assert to_decide(done, DROP, order=RUN) == done
    assert to_decide(done, DROP, order="dag/run 2/approve/-1") == DROP
    first, second = (TaskTry("dag", "run 1", "approve", -1, number) for number in (1, 2))
    assert _order(first) == _order(second) == RUN
    assert _order("ann") == _order(None) == ""


def test_each_change_of_a_statement_has_its_id() -> None:
    assert len({item.id for item in (TRUNCATE, ADD, DROP, OTHER, replace(ADD, policy="on_key_change"))}) == 5
    assert denied(TRUNCATE, "1").id == TRUNCATE.id
