# SPDX-License-Identifier: Apache-2.0
"""Topics in files: how folders and files are named, what a line holds, and which records a range of offsets has."""
