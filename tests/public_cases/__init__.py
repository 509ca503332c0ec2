# SPDX-License-Identifier: Apache-2.0
"""Set-ups of public bug reports with the outcome that is right."""
