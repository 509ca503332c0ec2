# SPDX-License-Identifier: Apache-2.0
"""Report work while it lasts: to a log, to a pipe, to a terminal."""
