# SPDX-License-Identifier: Apache-2.0
"""Where tables are written."""
