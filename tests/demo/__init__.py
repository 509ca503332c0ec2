# SPDX-License-Identifier: Apache-2.0
"""The demo: a web shop's log through Kafka, Airflow and Spark into Delta tables that must equal the database."""
