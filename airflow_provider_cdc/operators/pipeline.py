# SPDX-License-Identifier: Apache-2.0
"""Hold what all operators of a pipeline share: the argument ``pipeline``, errors and Airflow's view of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, BaseOperator, BaseOperatorLink

from airflow_provider_cdc.batch.arguments import PipelineLike, as_pipeline
from airflow_provider_cdc.core.errors import CdcError, Transient
from airflow_provider_cdc.surface.links import CdcPipelineLink

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.ledger.owner import TaskTry

_YAML = (".yaml", ".yml")


class PipelineOperator(BaseOperator):
    """Work on one pipeline.

    The rendered fields show the whole pipeline that the task ran with, also where it is the path of a file. A path is
    relative to the folder of the DAG's file, or absolute; templates in the file are rendered too.

    :param pipeline: a ``CdcPipeline``, the same as plain data, the path of a YAML file, or YAML text. (templated)
    """

    template_fields: Sequence[str] = ("pipeline",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"pipeline": "yaml"}
    operator_extra_links: Sequence[BaseOperatorLink] = (CdcPipelineLink(),)
    ui_color = "#dbeafe"

    def __init__(self, *, pipeline: PipelineLike, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def render_template_fields(self, context: Context, jinja_env: Any = None) -> None:
        """Render the templates, and those in the pipeline's file."""
        super().render_template_fields(context, jinja_env)
        self.pipeline = rendered_pipeline(self, self.pipeline, context, jinja_env)

    def configured(self, context: Context) -> CdcPipeline:
        """Return the pipeline; name a mapped task by it, and link the task to its page from now on.

        :raises ConfigurationError: names all problems at once.
        """
        pipeline = as_pipeline(self.pipeline)
        introduce(self, pipeline, context)
        return pipeline


def rendered_pipeline(task: BaseOperator, pipeline: PipelineLike, context: Context, jinja_env: Any) -> PipelineLike:
    """Return a task's pipeline as YAML text, with the templates of its file rendered; as it is where it is not valid.

    :param pipeline: the argument, its own templates rendered.
    """
    try:
        if isinstance(pipeline, (str, Path)) and str(pipeline).endswith(_YAML) and "\n" not in str(pipeline):
            text = _path(task, Path(pipeline)).read_text(encoding="utf-8")
            pipeline = task.render_template(text, context, jinja_env)
        return as_pipeline(pipeline).to_yaml()
    except (CdcError, OSError):  # execute reports it, with what to do
        return pipeline


def _path(task: BaseOperator, path: Path) -> Path:
    """Return a path below the folder of the DAG's file, if it is there."""
    dag = task.get_dag()
    sibling = None if dag is None or not dag.fileloc else Path(dag.fileloc).parent / path
    return sibling if sibling is not None and sibling.is_file() else path


def introduce(task: BaseOperator, pipeline: CdcPipeline, context: Context) -> None:
    """Name a mapped task by its pipeline, and link the task to the pipeline's page while it runs."""
    ti = context.get("ti")
    if ti is None:
        return
    if getattr(ti, "map_index", -1) >= 0 and not context.get("map_index_template"):
        context["map_index_template"] = pipeline.name  # a name has no characters of a template
    push_link(CdcPipelineLink(), task, context)


def push_link(link: BaseOperatorLink, task: BaseOperator, context: Context) -> None:
    """Set the address of a link before the task ends, when Airflow sets it again."""
    ti = context.get("ti")
    if ti is not None:
        ti.xcom_push(link.xcom_key, link.get_link(task, ti_key=ti))  # type: ignore[arg-type]


@contextmanager
def airflow_errors() -> Iterator[None]:
    """Turn our errors into Airflow's: one that may pass is retried, another fails at once."""
    try:
        yield
    except CdcError as error:
        raise airflow_error(error) from error


def airflow_error(error: CdcError) -> AirflowException:
    """Return an error as Airflow knows it."""
    kind = AirflowException if isinstance(error, Transient) else AirflowFailException
    return kind(str(error))


def task_try(context: Mapping[str, Any]) -> TaskTry | None:
    """Return the try that runs; None outside of Airflow."""
    from airflow_provider_cdc.ledger.owner import TaskTry

    ti = context.get("ti")
    if ti is None:
        return None
    return TaskTry(ti.dag_id, ti.run_id, ti.task_id, ti.map_index, ti.try_number)
