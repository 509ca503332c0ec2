# SPDX-License-Identifier: Apache-2.0
"""Triggers of deferred sensors."""
