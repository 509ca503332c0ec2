# SPDX-License-Identifier: Apache-2.0
"""List what each tool can send, how it is set up, and what is documented that it loses."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from airflow_provider_cdc.core.formats.registry import format_names, open_format
from tests.cross_format.dts_protobuf_writer import Writer as DtsWriter
from tests.cross_format.events import Writer
from tests.histories.kinds import Kind
from tests.histories.random_kinds import Palette

PREFIX = "src"


@dataclass(frozen=True)
class Style:
    """Set up a tool.

    :param partitions: of every data topic.
    :param snapshot_dies: Debezium: the connector dies in its snapshot and begins it again.
    :param file: number of the first log file.
    :param embedded: Debezium: whether records carry their schema.
    :param snapshot_null: Debezium: streamed rows have ``snapshot`` null instead of "false"
        (``replace.null.with.default=false``).
    :param snapshot_after: the tool starts after so many statements and sends what is there.
    :param topic_per_table: rows and statements of a table have a topic of their own.
    :param rows: DTS: row changes of one event in the source's log that go out in one record of each partition.
    :param minimal: row images lack what did not change, as the server writes them with ``binlog_row_image=MINIMAL``.
    :param log_restarts: statements before which the source's log begins again at lower places, later than all before.
    :param missed: Debezium: numbers of the statements that the connector does not see, from the first one on and before
        the other; it takes a new full snapshot then.
    :param ties: chance that a record is built in the same millisecond as the one before.
    :param flaws: what the tool leaves out or writes otherwise, by the names of tests/histories/flaws.py.
    :param server: ``source.options.server`` of the pipeline, empty where it is not stated.
    :param states_filter: whether the pipeline states the columns that the tool leaves out.
    """

    partitions: int = 3
    embedded: bool = True
    snapshot_null: bool = False
    transactions: bool = False
    heartbeats: bool = False
    snapshot_after: int = 0
    snapshot_dies: bool = False
    file: int = 1
    topic_per_table: bool = False
    rows: int = 1
    minimal: bool = False
    log_restarts: tuple[int, ...] = ()
    missed: tuple[int, int] = (0, 0)
    ties: float = 0.0
    flaws: frozenset[str] = frozenset()
    server: str = ""
    states_filter: bool = True


@dataclass(frozen=True)
class Tool:
    """Describe what one tool sends.

    :param lacks: statements that it does not carry, by the names of the generator's weights.
    :param packets: rows of one event in the source's log have one place, and go out in one packet of each partition.
    :param numbers_records: records of a partition have running numbers, so that none can be copied elsewhere.
    :param qualifies: it passes statements on without their default database, so that they must name theirs.
    :param snapshots: whether what is there at the start has records of its own kind.
    :param partial: what images of tables with a key lack under ``Style.minimal``: ``minimal`` is all but the key before
        and the changes after, ``changes`` all but key and changes in both.
    :param topics: whether each table may have a topic of its own.
    :param gtids: the server whose GTIDs name transactions in its records, empty without: they show which one it is.
    :param timed: whether all its records have source times.
    :param connector: whether it is Debezium's own connector, whose records tests/histories/wire.py writes.
    :param parks: codes that its page in docs/formats names for what its records do not show.
    """

    format: str
    palette: Palette = field(default_factory=Palette)
    lacks: tuple[str, ...] = ()
    packets: bool = False
    numbers_records: bool = False
    qualifies: bool = False
    snapshots: bool = False
    partial: str = ""
    topics: bool = False
    gtids: str = ""
    timed: bool = True
    connector: bool = False
    parks: frozenset[str] = frozenset()

    @cached_property
    def options(self) -> dict[str, str]:
        """Return ``source.options`` of a pipeline that reads it."""
        return {} if self.connector else dict(self.writer(Style()).options)

    @cached_property
    def by_clock(self) -> bool:
        """Return whether the tool's clock orders its records, so that repeats are not recognised."""
        return open_format(self.format, self.options).order == "clock"

    @cached_property
    def schema_topic(self) -> str | None:
        """Return the topic of the statements, None where they come among the rows."""
        if self.connector:
            return PREFIX
        wire = open_format(self.format, self.options)
        return None if wire.ddl_among_rows or "ddl" not in wire.carries else f"{PREFIX}.schema"

    @cached_property
    def states_creates(self) -> bool:
        """Return whether the pipeline states each CREATE TABLE."""
        return self.writer(Style()).creates

    def writer(self, style: Style) -> Writer:
        """Return a new writer."""
        if self.format == "dts-protobuf":
            # a checkpoint ends what waits: it must not stand between the rows of one event
            return DtsWriter(rows=style.rows, checked=7 if style.rows == 1 else sys.maxsize)
        module = importlib.import_module(f"tests.cross_format.{self.format.replace('-', '_')}_writer")
        writer: Writer = module.Writer()
        return writer


def _without(palette: Palette, lost: Callable[[Kind], bool]) -> Palette:
    keys = tuple(kind for kind in palette.keys if not lost(kind))
    return replace(palette, keys=keys, kinds=tuple(kind for kind in palette.kinds if not lost(kind)))


def _lost_by_avro(kind: Kind) -> bool:
    """Return whether the schema of tests/cross_format/avro_schema.py has too few digits for a type."""
    return kind.name == "timestamp" and (kind.length or 0) > 3


def _lost_by_dtle(kind: Kind) -> bool:
    """Return whether dtle does not carry a type whole (docs/wire/debezium-dtle.md A3)."""
    fraction = kind.name in ("datetime", "timestamp") and (kind.length or 0) > (3 if kind.name == "datetime" else 0)
    return fraction or kind.name in ("decimal", "enum")


ANY = Palette()
# a backtick in a name stays doubled in Canal's images (docs/wire/canal.md 10.4)
CANAL = replace(
    ANY,
    tables=tuple(name for name in ANY.tables if "`" not in name),
    columns=tuple(name for name in ANY.columns if "`" not in name),
)
DOTLESS = replace(ANY, tables=tuple(name for name in ANY.tables if "." not in name))  # database.table is one text
# names with dots, quotes or blanks, or that are not ASCII, are not supported (docs/wire/oceanbase-oms.md 7.4)
OMS = replace(
    ANY,
    databases=("shop", "stock"),
    tables=("orders", "Order_Items", "t_1", "lines"),
    columns=("a", "b", "v", "Order", "select", "x_y", "_cdc_delete", "before", "s_t", "w"),
)
ROWS_ONLY = ("alter", "create", "rename", "swap", "ghost", "recreate", "drop")
# a table of which no row was read takes the name of one that had rows: nothing shows that its rows are captured
UNREAD = ("is not captured: capture", "the log has no row of it: capture")
# a repeat has the time of its original here, and attempts at a snapshot with equal times are not told apart
ALIKE = frozenset({"apply.snapshots_alike"})
# what a clock leaves open (docs/formats/README.md, Order)
BY_CLOCK = frozenset({"apply.order_unknown", "apply.schema_missing"})

TOOLS = {
    tool.format: tool
    for tool in (
        # the connector dies at the row after columns exchanged their names (tableChanges lose one)
        Tool("debezium-json", lacks=("exchange",), snapshots=True, gtids="mariadb", connector=True, parks=ALIKE),
        Tool("debezium-avro", lacks=("exchange",), snapshots=True, gtids="mariadb", connector=True, parks=ALIKE),
        Tool("canal-json", CANAL, topics=True, parks=BY_CLOCK),
        Tool("canal-protobuf", CANAL, packets=True, topics=True, partial="minimal"),
        Tool("dtle-json", _without(ANY, _lost_by_dtle), qualifies=True, gtids="mysql", timed=False),
        Tool("dts-protobuf", numbers_records=True, gtids="mysql", partial="minimal"),
        Tool("drs-json", topics=True, snapshots=True, partial="changes"),
        Tool("drs-json-c", topics=True, snapshots=True, partial="changes"),
        Tool("drs-avro", _without(DOTLESS, _lost_by_avro), topics=True, snapshots=True),
        Tool("oms-default", OMS),
        Tool("oms-default-extended", OMS),
        Tool("oms-dataworks", OMS, parks=BY_CLOCK),
        Tool("oms-canal", OMS, lacks=ROWS_ONLY, parks=BY_CLOCK),
        Tool("oms-shareplex", OMS, lacks=(*ROWS_ONLY, "truncate")),
    )
}
assert set(TOOLS) == set(format_names()), "a format without a tool in the histories"
