# SPDX-License-Identifier: Apache-2.0
"""Convert whole columns of values: the vectorized twin of ``scalar``.

Each module has a twin of the same name in ``scalar``: ``convert`` (one converter for each encoding), ``temporal``,
``binary``. ``decimals`` and ``checked_casts`` have none: one value needs neither numpy nor Arrow's casts, and the twin
of ``decimals`` is a few lines of ``scalar/convert.py``. Here anything unusual in a column raises, and
``values/blocks.py`` converts again in smaller parts, at last with ``scalar``. Who changes one twin changes the other;
``tests/unit/core/values/test_agreement.py`` compares them.
"""
