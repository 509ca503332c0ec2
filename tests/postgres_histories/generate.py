# SPDX-License-Identifier: Apache-2.0
"""Make random histories: which tables there are, and what happens to them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from tests.histories.source import RefusedError
from tests.histories.tools import Style
from tests.postgres_histories import steps
from tests.postgres_histories.random_ddl import DdlMaker
from tests.postgres_histories.replay import PgCase

SIZES = (5, 8, 12, 12, 20, 30, 45)
_SOURCE = {"insert": 8, "update": 8, "delete": 3, "truncate": 1, "move": 3, "copy": 2, "several": 3, "open": 2}
_CONNECTOR = {"restart": 3, "incremental": 2, "blocking": 1, "always": 1, "lost": 1, "restored": 0.4}
_DDL = {"add": 3, "drop_column": 2, "retype": 2, "create": 1, "rename": 1, "rename_column": 1, "drop": 1, "identity": 1}
_LOGGED = {"create_as": 1, "recreate": 1, "swap": 1, "volatile": 0.3, "mixed": 2, "key": 0.5, "forget": 0.5}


class Maker(DdlMaker):
    """Chooses what happens next, by the source's present state."""

    def weights(self) -> dict[str, float]:
        """Return the weights of what happens."""
        weights: dict[str, float] = {**_SOURCE, **_CONNECTOR}
        if self._logs_ddl:
            return weights | _DDL | _LOGGED
        if not self._embedded:
            return weights
        return weights | ({"add": 1, "drop_column": 1, "create": 1} if self._on_unseen == "apply" else _DDL)


def case_of(seed: int, sizes: Sequence[int] = SIZES) -> PgCase:
    """Return the case of a seed, always the same."""
    chance = random.Random(f"postgres {seed}")
    logs_ddl, embedded = chance.random() < 0.5, chance.random() < 0.7
    on_unseen, hazards = chance.choice(("ask", "apply")), chance.random() < 0.25
    style = Style(
        partitions=chance.choice((1, 2, 3)),
        embedded=embedded,
        snapshot_null=chance.random() < 0.5,
        transactions=chance.random() < 0.7,
        heartbeats=chance.random() < 0.2,
        snapshot_dies=chance.random() < 0.2,
    )
    maker = Maker(chance, style, logs_ddl=logs_ddl, on_unseen=on_unseen, hazards=hazards)
    for _ in range(chance.choice((1, 2, 2, 3))):
        maker.append(steps.Commit((maker.table(maker.free()),)))
    first, count = chance.randint(0, 4), chance.choice(sizes)
    snapshot_after = 0
    while len(maker.steps) < count:
        if len(maker.steps) >= first and not snapshot_after:
            snapshot_after = len(maker.steps)
            maker.world.start()
        kinds, weights = zip(*maker.weights().items(), strict=True)
        kind = chance.choices(kinds, weights)[0]
        try:
            getattr(maker, kind)()
        except RefusedError:
            count -= chance.random() < 0.1
    return PgCase(
        seed,
        tuple(maker.steps),
        replace(style, snapshot_after=snapshot_after or len(maker.steps)),
        batches=chance.choice((1, 2, 2, 3, 4)),
        ragged=chance.choice((0.0, 0.5, 1.0)),
        late=chance.choice((0, 0, 0, 1, 2)),
        crashes=chance.choice((0.0, 0.0, 0.4)),
        repeats=0.2,
        losses=chance.choice((0.0, 0.0, 0.3)),
        on_drop=chance.choice(("keep", "keep", "apply")),
        logs_ddl=logs_ddl,
        on_unseen=on_unseen,
    )
