# SPDX-License-Identifier: Apache-2.0
"""Convert the JSON tokens of row images to typed Arrow columns, exactly or not at all.

``columnar`` and ``scalar`` are twins: the same conversions, vectorized for usual input, and value by value as the
reference and the fallback. ``blocks`` chooses between them. ``shared`` serves both, ``alter`` converts stored values as
an ALTER TABLE does, ``types`` maps source types to Arrow types. ``tests/unit/core/values/test_agreement.py`` compares
the twins.
"""
