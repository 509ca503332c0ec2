# SPDX-License-Identifier: Apache-2.0
"""What needs a real Spark session."""
