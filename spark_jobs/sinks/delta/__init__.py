# SPDX-License-Identifier: Apache-2.0
"""Delta tables by path."""
