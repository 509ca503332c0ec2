# SPDX-License-Identifier: Apache-2.0
"""DECIMALs of up to 38 digits against Python's, with the values where words of 32 and 64 bits end.

Arrow 26 divides decimals wrongly there: it rounds 4294967295.999999999999999999 down to 4294967294.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from random import Random

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.expressions.expression import parse
from tests.sample import amount

EXACT = Context(prec=300, rounding=ROUND_HALF_UP)
WORDS = [0, 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**96 - 1]
FACTORS = [1, 10**6, 10**9, 10**18, 2**32, 2**64]


def number(random: Random, kind: pa.DataType) -> Decimal:
    """Return a value of a type; most are made of words that end where the processor's do."""
    limit: int = 10**kind.precision
    while True:
        value = sum(random.choice(WORDS) * random.choice(FACTORS) for _ in range(random.randint(1, 4)))
        value += random.choice([-1, 0, 0, 1, random.randrange(10**9)])
        if random.random() < 0.3:
            value = random.randrange(10 ** random.randint(1, kind.precision))
        if 0 <= value < limit:
            return EXACT.scaleb(Decimal(value * random.choice([1, -1])), -kind.scale)


def fitting(value: Decimal, kind: pa.DataType, rounding: str = ROUND_HALF_UP) -> Decimal | None:
    """Return a value as a type holds it; None if it has too many digits."""
    rounded = value.quantize(Decimal(1).scaleb(-kind.scale), rounding, EXACT)
    limit = Decimal(10) ** (kind.precision - kind.scale)
    return rounded if -limit < rounded < limit else None  # abs() would round


KINDS = [pa.decimal128(*digits) for digits in ((38, 18), (38, 6), (38, 0), (38, 38), (20, 0), (18, 2), (30, 15))]


@pytest.mark.parametrize("seed", range(amount(2, 4)))
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_digits_that_fall_away(kind: pa.DataType, seed: int) -> None:
    random = Random(seed)
    values = [number(random, kind) for _ in range(500)]
    columns = {"x": pa.array(values, kind)}
    for sql, rounding in (
        ("FLOOR(x)", ROUND_FLOOR),
        ("CEIL(x)", ROUND_CEILING),
        ("ROUND(x)", ROUND_HALF_UP),
        ("ROUND(x, 3)", ROUND_HALF_UP),
        ("CAST(x AS DECIMAL(38, 2))", ROUND_HALF_UP),
        ("CAST(x AS DECIMAL(38, 20))", ROUND_HALF_UP),
        ("CAST(x AS DECIMAL(20, 0))", ROUND_HALF_UP),
    ):
        result, _ = parse(sql).evaluate(columns, len(values))
        assert result.to_pylist() == [fitting(value, result.type, rounding) for value in values], sql
    whole, _ = parse("CAST(x AS BIGINT)").evaluate(columns, len(values))
    cut = [int(value.quantize(Decimal(1), ROUND_DOWN, EXACT)) for value in values]
    assert whole.to_pylist() == [one if -(1 << 63) <= one < 1 << 63 else None for one in cut]


@pytest.mark.parametrize("seed", range(amount(1, 2)))
@pytest.mark.parametrize("left", KINDS, ids=str)
@pytest.mark.parametrize("right", KINDS[:1] + KINDS[2:6], ids=str)
def test_arithmetic(left: pa.DataType, right: pa.DataType, seed: int) -> None:
    random = Random(seed)
    pairs = [(number(random, left), number(random, right)) for _ in range(200)]
    columns = {"x": pa.array([a for a, _ in pairs], left), "y": pa.array([b for _, b in pairs], right)}
    operations = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply, "/": EXACT.divide, "%": EXACT.remainder}
    for sign, operate in operations.items():
        if sign == "*" and left.scale + right.scale > 38:
            continue
        result, failed = parse(f"x {sign} y").evaluate(columns, len(pairs))
        expected = [None if sign in "/%" and not b else fitting(operate(a, b), result.type) for a, b in pairs]
        assert result.to_pylist() == expected, sign
        assert [False if failed is None else bool(failed[i]) for i in range(len(pairs))] == [
            one is None for one in expected
        ]
