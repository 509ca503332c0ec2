# SPDX-License-Identifier: Apache-2.0
"""Show pipelines in Airflow's UI: a page, and the routes that it reads."""
