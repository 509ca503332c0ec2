# SPDX-License-Identifier: Apache-2.0
"""Offer pipelines, ledgers and sources as Airflow hooks, with forms and test buttons of their connections."""
