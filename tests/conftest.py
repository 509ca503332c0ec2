# SPDX-License-Identifier: Apache-2.0
"""Fixtures every folder of tests may ask for; a service starts when the first test wants it."""

from __future__ import annotations

import atexit
import gc
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.sample import ALL, left_out

if TYPE_CHECKING:
    from airflow_provider_cdc.engine.java import JavaHome
    from tests.services.broker import Broker
    from tests.services.postgres import Postgres
    from tests.services.s3 import S3


ROOT = Path(__file__).resolve().parents[1]
WORKER = os.environ.get("PYTEST_XDIST_WORKER")
# Spark takes every core it finds: one process of a parallel run has all tests that start it.
SPARK_TESTS = (
    "tests/airflow/test_spark_engine.py",
    "tests/airflow/test_spark_writer_on_s3.py",
    "tests/canal/test_spark.py",
    "tests/histories/test_histories_spark.py",
    "tests/sinks/test_behaviour.py",
    "tests/sinks/test_met_rows.py",
    "tests/spark/",
    "tests/system/test_kept_spark.py",
    "tests/system/test_kills_with_spark.py",
    "tests/system/test_repeat.py",
    "tests/system/test_walk.py",
)


def _isolate() -> None:
    """Keep Airflow and Spark away from what the user has set up; must happen before anything imports Airflow."""
    if "AIRFLOW_HOME" not in os.environ or WORKER:  # a worker inherits its controller's, a SQLite file
        home = tempfile.mkdtemp(prefix="cdc-airflow-")
        atexit.register(shutil.rmtree, home, ignore_errors=True)
        os.environ["AIRFLOW_HOME"] = home
    os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    # Workers run whatever `python3` is on PATH unless configured otherwise.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


_isolate()
gc.disable()  # what is imported and collected stays


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a test that starts Spark where a parallel run would not see it."""
    starts = item.get_closest_marker("spark") or "session" in getattr(item, "fixturenames", ())
    if starts and not item.nodeid.startswith(SPARK_TESTS):
        pytest.fail("this test starts Spark: name its file in SPARK_TESTS of tests/conftest.py", pytrace=False)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the suite samples, unless a test is asked for by name."""
    if ALL or any("::" in name for name in config.args):
        return
    rest = set(left_out(items))
    if rest:
        config.hook.pytest_deselected(items=list(rest))
        items[:] = [item for item in items if item not in rest]


def pytest_collection_finish() -> None:
    """Take what was imported and collected out of the garbage collector's view: it stays, and each look at it costs."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out tests by file, all that start Spark as one."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.startswith(SPARK_TESTS) else nodeid.partition("::")[0]

    return ByFile(config, log)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all processes of a parallel run know."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if WORKER else own


@pytest.fixture(scope="session")
def broker(run_folder: Path) -> Iterator[Broker]:
    """Return a broker that others use at the same time: a test's topics have names of their own."""
    from tests.services.shared_broker import shared_broker

    with shared_broker(run_folder / "broker") as running:
        yield running


@pytest.fixture(scope="session")
def filled(run_folder: Path) -> Iterator[Broker]:
    """Return a broker with the shop's first two phases, for tests that leave them as they are."""
    from tests.airflow.shop import demand_data, feed
    from tests.services.shared_broker import shared_broker

    demand_data()
    with shared_broker(run_folder / "filled_broker", lambda running: feed(running, 0, 1)) as running:
        yield running


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    from tests.services.postgres import Postgres
    from tests.services.process import NotAvailable

    try:
        running = Postgres()
    except NotAvailable as reason:
        pytest.skip(str(reason))
    with running:
        yield running


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    from tests.services.process import NotAvailable
    from tests.services.s3 import S3

    try:
        running = S3()
    except NotAvailable as reason:
        pytest.skip(str(reason))
    with running:
        yield running


@pytest.fixture(scope="session")
def java() -> JavaHome:
    """Return the Java Spark runs on; JAVA_HOME points to it from here on."""
    from airflow_provider_cdc.engine.java import find_java

    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    return java


@pytest.fixture(scope="session")
def spark_jars(java: JavaHome) -> list[Path]:
    """Return the locked jars of the Spark reader and writer, and the one with which Spark reads Iceberg tables."""
    from airflow_provider_cdc.engine.jars import fetch, jar_cache, lock_of

    locks = lock_of("spark", "4.1"), ROOT / "tests" / "services" / "iceberg_spark.lock"
    return [jar for lock in locks for jar in fetch(lock, jar_cache(), java.executable)]


@pytest.fixture(scope="session")
def session(spark_jars: list[Path]) -> Iterator[Any]:
    """Return the one Spark session of a test run, with the locked jars; a JVM takes jars only when it starts."""
    from tests.services.delta_session import delta_session
    from tests.services.process import SHORT_LIVED_JAVA

    # workers run the tests' own functions too
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    settings = {
        "spark.driver.extraJavaOptions": SHORT_LIVED_JAVA,
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "2g",
    }
    running = delta_session("tests", spark_jars, settings)
    logging.getLogger("py4j").setLevel(logging.WARNING)  # it logs its end, when pytest has closed what it logs to
    yield running
    running.stop()
