# SPDX-License-Identifier: Apache-2.0
"""A drill for people on call: ten incidents on a whole Airflow, and what page, log, alarm and command say of each."""
