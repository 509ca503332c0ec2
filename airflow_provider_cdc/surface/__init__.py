# SPDX-License-Identifier: Apache-2.0
"""Share between operators, sensors and the UI: assets, links, checks, notifications, retries."""
