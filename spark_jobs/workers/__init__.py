# SPDX-License-Identifier: Apache-2.0
"""What runs in Spark's worker processes besides tasks."""
