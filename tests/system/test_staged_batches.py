# SPDX-License-Identifier: Apache-2.0
"""A batch that is staged on the lake, run elsewhere and published: equal, once, and repeatable at every step."""

from __future__ import annotations

import base64
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.batch.result import BatchResult
from airflow_provider_cdc.batch.staging import publish, stage
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import CREDENTIALS_NAME, credentials_file, take_secrets
from airflow_provider_cdc.core.errors import BusyError, ConfigurationError, DataError, UnavailableError
from airflow_provider_cdc.ledger import Ledger
from tests.airflow.shop import demand_data
from tests.services import forked
from tests.system.recorded_files import FilesSite
from tests.system.verdict import doubled_commits, ledger_faults, unequal

pytestmark = pytest.mark.system

SALT = "planted-salt-1f0c"
FINAL, REFUSED = 0, 2
"""Exit codes of the entry point."""


@dataclass
class Platform:
    """A pipeline over files, and what would run its jobs elsewhere."""

    site: FilesSite
    secrets: dict[str, Any]

    @property
    def pipeline(self) -> CdcPipeline:
        return CdcPipeline.from_dict(self.site.document())

    def stage(self, **more: Any) -> dict[str, Any]:
        return stage(self.pipeline, **{"until": None, **more})

    def run(self, plan: dict[str, Any]) -> tuple[int, str]:
        """Run a staged job; return its exit code and what it said."""
        packed = base64.b64encode(json.dumps(self.secrets).encode()).decode()
        environment = {**self.site.env(), "AIRFLOW_CDC_SECRETS": packed}
        code, out, err = forked.run_staged(plan["arguments"], environment, self.site.folder)
        assert SALT not in out + err
        return code, out + err

    def publish(self, plan: dict[str, Any]) -> BatchResult:
        return publish(self.pipeline, json.loads(json.dumps(plan)))  # as XCom has it


@pytest.fixture
def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Platform:
    demand_data()
    site = FilesSite(tmp_path, {})
    site.changes = {"mask_connection": "salt", "policy": {"engine": "auto"}}
    monkeypatch.setenv("AIRFLOW_CONN_SALT", json.dumps({"conn_type": "generic", "password": SALT}))
    return Platform(site, {"mask": {"salt": SALT}})


def test_each_step_may_be_repeated_and_the_tables_are_equal(platform: Platform) -> None:
    site = platform.site
    site.feed(0)
    plan = platform.stage()
    job = Path(plan["job"])
    assert (plan["status"], plan["seq"], plan["secrets"]) == ("staged", 1, ["mask.salt"])
    with pytest.raises(UnavailableError, match=r"engine\.no_result.*nothing has begun"):
        platform.publish(plan)
    (job / "job.json").unlink()  # a task that was killed before it wrote the job
    assert {**platform.stage(), "began": plan["began"]} == plan
    assert platform.run(plan)[0] == FINAL
    (job / "result.json").unlink()  # a driver that was killed before it wrote the result
    assert "done before: batch 1" in platform.run(plan)[1]
    assert "done before: the job" in platform.run(plan)[1]
    assert json.loads((job / "status.json").read_text())["engine"] == "inline"
    result = platform.publish(plan)
    assert (result.status, result.repeated, result.more, result.records) == ("done", None, None, plan["records"])
    assert platform.publish(plan).repeated
    assert unequal(site, 0) == {} and doubled_commits(site.lake) == [] and ledger_faults(site, 1) == []
    nothing = platform.stage()
    assert nothing["status"] == "done" and "arguments" not in nothing
    assert platform.publish(nothing).status == "nothing_to_do"


def test_a_sync_that_comes_between_finishes_the_batch(platform: Platform) -> None:
    site = platform.site
    site.feed(0)
    plan = platform.stage()
    assert site.sync().code == 0
    code, said = platform.run(plan)
    assert code == FINAL and "done before: batch 1" in said
    assert platform.publish(plan).repeated and platform.stage()["status"] == "done"
    assert unequal(site, 0) == {} and doubled_commits(site.lake) == []


def test_no_document_has_a_secret_and_no_job_runs_without_one(platform: Platform) -> None:
    platform.site.feed(0)
    plan, platform.secrets = platform.stage(), {}
    code, said = platform.run(plan)
    assert code == REFUSED and "secrets are missing: mask.salt" in said and "AIRFLOW_CDC_SECRETS_FILE" in said
    assert not (Path(plan["job"]) / "result.json").exists()
    written = [file for file in platform.site.folder.rglob("*") if file.is_file()]
    assert len(written) > 5 and SALT not in json.dumps(plan)
    assert [file for file in written if SALT.encode() in file.read_bytes()] == []


def test_another_release_refuses_the_job(platform: Platform) -> None:
    platform.site.feed(0)
    plan = platform.stage()
    file = Path(plan["job"]) / "job.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "made_by": "0.0.9"}))
    code, said = platform.run(plan)
    assert code == REFUSED and "made by release 0.0.9" in said


def test_a_job_that_failed_is_staged_again_under_another_token(platform: Platform) -> None:
    platform.site.feed(0)
    plan = platform.stage()
    log = platform.site.log
    shutil.move(log, log.with_name("away"))
    log.mkdir()
    code, said = platform.run(plan)
    assert code == FINAL and "files.gone" in said
    assert platform.publish(plan).error is not None
    again = platform.stage()
    assert again["seq"] == 1 and again["token"] == plan["token"].removesuffix("1") + "2"
    log.rmdir()
    shutil.move(log.with_name("away"), log)
    assert platform.run(again)[0] == FINAL and platform.publish(again).status == "done"
    assert unequal(platform.site, 0) == {}


def test_a_batch_whose_records_are_lost_is_given_up_where_that_is_accepted(platform: Platform) -> None:
    platform.site.feed(0)
    plan = platform.stage(accept_loss=True)
    shutil.rmtree(platform.site.log)
    platform.site.log.mkdir()
    platform.run(plan)
    error = platform.publish(plan).error
    assert error is not None and error.code == "files.gone" and "clear the task that stages" in error.hint
    assert Ledger(f"sqlite:///{platform.site.ledger}").open("shop") is None
    with pytest.raises(DataError, match="given up"):
        platform.publish(plan)


def test_a_request_of_several_batches_says_that_it_needs_more(platform: Platform) -> None:
    site = platform.site
    site.changes["policy"] = {"engine": "auto", "batch_records": 300}
    site.feed(0)
    more: list[bool | None] = []
    while (plan := platform.stage())["status"] == "staged":
        assert platform.run(plan)[0] == FINAL
        more += [platform.publish(plan).more, platform.publish(plan).more]
    assert {*more[:-2]} == {True} and more[-2:] == [None, None]
    assert unequal(site, 0) == {} and doubled_commits(site.lake) == []


def test_a_ledger_that_was_lost_takes_over_what_ran_and_stages_the_next(platform: Platform) -> None:
    site = platform.site
    site.feed(0)
    plan = platform.stage()
    platform.run(plan)
    platform.publish(plan)
    site.ledger.unlink()
    site.feed(1)
    lost = platform.stage()
    assert platform.run(lost)[0] == FINAL
    with pytest.raises(BusyError, match="did not know 1 batches"):
        platform.publish(lost)
    plan = platform.stage()
    assert plan["seq"] == 2 and platform.run(plan)[0] == FINAL
    assert platform.publish(plan).status == "done"
    assert unequal(site, 1) == {} and doubled_commits(site.lake) == []


def test_a_plan_of_another_pipeline_is_refused(platform: Platform) -> None:
    platform.site.feed(0)
    plan = platform.stage()
    with pytest.raises(ConfigurationError, match="made for pipeline other"):
        platform.publish({**plan, "pipeline": "other"})


@pytest.mark.parametrize("packed", [str, lambda text: base64.b64encode(text.encode()).decode()])
@pytest.mark.parametrize("in_file", [False, True])
def test_secrets_come_plain_or_packed_by_variable_or_file(
    packed: Any, in_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = packed(json.dumps({"mask": {"salt": SALT}}))
    (tmp_path / "secrets").write_text(f"{text}\n")
    name, value = ("_FILE", str(tmp_path / "secrets")) if in_file else ("", text)
    monkeypatch.setenv(f"AIRFLOW_CDC_SECRETS{name}", value)
    assert take_secrets() == {"mask": {"salt": SALT}}
    assert in_file or take_secrets() == {}, "no child of the process has them"


@pytest.mark.parametrize("size", [1, 127, 128, 70_000])
def test_secrets_come_with_the_credentials_of_a_container_of_yarn(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layout is that of Hadoop's class Credentials; a container's file has YARN's own token before the secrets."""
    mine = {"mask": {"salt": "s" * size}}
    alone = credentials_file(CREDENTIALS_NAME, json.dumps(mine).encode())
    token = b"\x05alias\x8f\x90" + b"i" * 0x90 + b"\x02pw\x10YARN_AM_RM_TOKEN\x00"
    assert alone.startswith(b"HDTS\x00\x00\x01\x0bairflow-cdc")
    (tmp_path / "tokens").write_bytes(b"HDTS\x00\x01" + token + alone[6:])
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "tokens"))
    assert take_secrets() == mine
    (tmp_path / "tokens").write_bytes(b"HDTS\x00\x01" + token + b"\x00")
    assert take_secrets() == {}, "a container of YARN that has no secret of ours"


@pytest.mark.parametrize("broken", [f"{{{SALT}", SALT, f'["{SALT}"]', f'{{"mask": "{SALT}"}}'])
def test_secrets_that_cannot_be_read_are_not_shown(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CDC_SECRETS", broken)
    with pytest.raises(ConfigurationError) as caught:
        take_secrets()
    assert SALT not in str(caught.value)


def test_a_batch_that_fail_on_refuses_stays_planned_and_unstarted(platform: Platform) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException

    from airflow_provider_cdc import CdcPlanOperator

    for phase in range(3):  # the last one has DDL that leaves stored values as they are
        platform.site.feed(phase)
    settings: dict[str, Any] = {"pipeline": platform.site.document(), "until": "now", "stage": True}
    with pytest.raises(AirflowFailException, match="schema changes that fail_on names"):
        CdcPlanOperator(task_id="stage", fail_on=["mapping"], **settings).execute({})
    opened = Ledger(f"sqlite:///{platform.site.ledger}").open("shop")
    assert opened is not None and opened.seq == 1
    plan = CdcPlanOperator(task_id="stage", fail_on=["unknown"], **settings).execute({})
    assert (plan["status"], plan["seq"], plan["ddl_total"] > 0) == ("staged", 1, True)
    assert plan["arguments"] == platform.stage()["arguments"]


def test_the_verb_writes_what_a_job_needs_to_a_file_that_only_its_owner_reads(platform: Platform) -> None:
    platform.site.feed(0)
    file = platform.site.folder / "secrets"
    answer = platform.site.run("secrets", str(file))
    assert (answer.code, answer.out.split()) == (0, platform.stage()["secrets"])
    assert json.loads(file.read_text()) == platform.secrets and file.stat().st_mode & 0o777 == 0o600
    assert SALT not in answer.out + answer.err
    again = platform.site.run("secrets", str(file))
    assert again.code == 2 and "File exists" in again.err
