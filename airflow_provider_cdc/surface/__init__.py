# SPDX-License-Identifier: Apache-2.0
"""What operators, sensors and the UI share: assets, links, checks, notifications, retries, settings."""
