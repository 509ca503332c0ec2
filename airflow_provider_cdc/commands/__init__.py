# SPDX-License-Identifier: Apache-2.0
"""The verbs of the command line: each asks the library once, prints the answer, and returns the exit code."""
