# SPDX-License-Identifier: Apache-2.0
"""Share code between formats."""
