# SPDX-License-Identifier: Apache-2.0
"""The guide's snippets for other platforms: what the providers' own operators make of a staged batch."""

from __future__ import annotations

import re
import sys
from datetime import datetime
from importlib import import_module
from importlib.metadata import packages_distributions
from typing import Any

import pytest

from tests.airflow.shop import ROOT
from tests.architecture.distributions import normal
from tests.architecture.imports import imports_below

pytestmark = pytest.mark.airflow

GUIDE = (ROOT / "docs" / "guides" / "other-platforms.md").read_text()
PLAN: dict[str, Any] = {
    "status": "staged",
    "seq": 3,
    "token": "cdc-shop-3-1a2b3c4d5e6f-1",
    "job": "s3://lake/_cdc/shop/jobs/3/x-1",
    "arguments": ["s3://lake/_cdc/shop/jobs/3/x-1", "--store", "AWS_REGION=eu-central-1"],
    "main": "s3://lake/_cdc/shop/code/0f/run.py",
    "payload": "s3://lake/_cdc/shop/code/0f/airflow_cdc_payload.zip",
    "conf": {"spark.executorEnv.OPENBLAS_NUM_THREADS": "1", "spark.authenticate": "true"},
}


class Pulled:
    """A task instance that pulls the outputs of the task that staged."""

    dag_id, run_id, task_id, map_index, try_number = "shop", "run 1", "run", -1, 1

    def xcom_pull(self, task_ids: Any = None, key: str = "return_value", **more: Any) -> Any:
        return PLAN if key == "return_value" else PLAN[key]


def rendered(module: str) -> Any:
    """Return the operator of the snippet that imports from a module, its fields rendered; skip where it is missing."""
    pytest.importorskip(module, reason=f"the provider of {module} is not installed", exc_type=ImportError)
    from airflow.sdk import DAG

    from airflow_provider_cdc import CdcPlanOperator

    (snippet,) = [code for code in re.findall(r"```python\n(.+?)```", GUIDE, re.DOTALL) if f"from {module} " in code]
    with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1)):
        names = {"stage": CdcPlanOperator(task_id="stage", pipeline="shop.yaml", stage=True)}
        exec(snippet, names)
    operator: Any = names["run"]
    operator.render_template_fields({"ti": Pulled()})
    return operator


_MAY_LACK = {"aws_msk_iam_sasl_signer": ["aws-msk-iam-sasl-signer-python"]}  # make compat has no extra of MSK


def test_the_guide_names_the_packages_that_a_job_needs() -> None:
    modules = {one.module.partition(".")[0] for one in imports_below("airflow_provider_cdc/core", "spark_jobs")}
    modules -= {"airflow_provider_cdc", "spark_jobs", *sys.stdlib_module_names}
    modules -= {"pyspark", "py4j", "pydantic", "sqlalchemy"}  # of the platform, and of Iceberg tables
    carriers = {**packages_distributions(), "google": ["protobuf"], **_MAY_LACK}
    needed = {normal(carriers.get(module, [module])[0]) for module in modules} - {"botocore"}  # the signer brings it
    always, sometimes = re.findall(
        r"Both need the packages\n(.+?),\s*and\s+(pyiceberg.+?), on\s+Python", GUIDE, re.DOTALL
    )[0]
    named = {normal(name) for name in re.split(r",\s*|\s+and\s+", always)}
    named |= {normal(name) for name in re.findall(r"(?:^|,\s+)([\w-]+) for\s", sometimes)}
    assert named == {*needed, "tzdata"}


def test_databricks() -> None:
    run = rendered("airflow.providers.databricks.operators.databricks")
    request = run._prepare_submit_json({})
    (task,) = request["tasks"]
    assert (request["idempotency_token"], request["run_name"]) == (PLAN["token"], PLAN["token"])
    assert task["python_wheel_task"]["parameters"] == PLAN["arguments"]
    assert task["new_cluster"]["spark_conf"] == PLAN["conf"]
    assert task["new_cluster"]["spark_env_vars"]["AIRFLOW_CDC_SECRETS"] == "{{secrets/cdc/shop}}"


def test_emr_serverless() -> None:
    run = rendered("airflow.providers.amazon.aws.operators.emr")
    import botocore.session
    from botocore.validate import ParamValidator

    request = {
        "applicationId": run.application_id,
        "executionRoleArn": run.execution_role_arn,
        "jobDriver": run.job_driver,
        "configurationOverrides": run.configuration_overrides,
        "name": run.name,
        "clientToken": PLAN["token"],
    }
    service = botocore.session.get_session().get_service_model("emr-serverless")
    report = ParamValidator().validate(request, service.operation_model("StartJobRun").input_shape)
    assert not report.has_errors(), report.generate_report()
    submit = run.job_driver["sparkSubmit"]
    assert (submit["entryPoint"], submit["entryPointArguments"]) == (PLAN["main"], PLAN["arguments"])
    assert submit["sparkSubmitParameters"] == f"--py-files {PLAN['payload']}"


def test_dataproc_serverless() -> None:
    run = rendered("airflow.providers.google.cloud.operators.dataproc")
    from google.cloud.dataproc_v1 import Batch

    batch = Batch(run.batch).pyspark_batch  # refuses members that the API does not have
    assert (batch.main_python_file_uri, [*batch.python_file_uris]) == (PLAN["main"], [PLAN["payload"]])
    assert [*batch.args] == PLAN["arguments"]
    assert re.fullmatch(r"[a-z0-9][a-z0-9\-]{2,61}[a-z0-9]", run.batch_id) and run.batch_id == PLAN["token"]


def test_livy() -> None:
    run = rendered("airflow.providers.apache.livy.operators.livy")
    hook = import_module("airflow.providers.apache.livy.hooks.livy").LivyHook
    body = hook.build_post_batch_body(**run.spark_params)
    assert (body["file"], body["pyFiles"], body["args"]) == (PLAN["main"], [PLAN["payload"]], PLAN["arguments"])
    assert body["name"] == PLAN["token"]


def test_spark_application_on_kubernetes() -> None:
    run = rendered("airflow.providers.cncf.kubernetes.operators.spark_kubernetes")
    spark = run.template_body["spark"]
    assert spark["metadata"]["name"] == PLAN["token"]
    spec = spark["spec"]
    assert (spec["mainApplicationFile"], spec["deps"]["pyFiles"]) == (PLAN["main"], [PLAN["payload"]])
    assert (spec["arguments"], spec["sparkConf"]) == (PLAN["arguments"], PLAN["conf"])
