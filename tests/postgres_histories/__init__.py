# SPDX-License-Identifier: Apache-2.0
"""Random histories of a PostgreSQL source as Debezium sends them, against a plain model of the server."""
