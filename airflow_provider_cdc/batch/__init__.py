# SPDX-License-Identifier: Apache-2.0
"""Plan, run and report one batch on the Airflow side."""
