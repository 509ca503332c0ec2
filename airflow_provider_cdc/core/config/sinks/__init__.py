# SPDX-License-Identifier: Apache-2.0
"""Describe the sinks that a pipeline may have, a module for each kind."""
