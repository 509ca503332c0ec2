# SPDX-License-Identifier: Apache-2.0
"""Define the nouns of the project: names, positions, offsets, changes, schemas, encodings, states."""
