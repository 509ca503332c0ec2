# SPDX-License-Identifier: Apache-2.0
"""The Spark side: drivers, tasks, readers and writers; ships to executors as one zip and never imports airflow."""
