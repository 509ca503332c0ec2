# SPDX-License-Identifier: Apache-2.0
"""The kernel: what CDC records mean and what a table must become, without Airflow and Spark; both sides import it."""
