# SPDX-License-Identifier: Apache-2.0
"""Parse DDL text to statements: the grammars of MySQL, MariaDB, TiDB and Oracle. Timelines are in ``core/timeline``."""
