# SPDX-License-Identifier: Apache-2.0
"""Resolve connections and settings of Airflow into plain options."""
