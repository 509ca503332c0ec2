# SPDX-License-Identifier: Apache-2.0
"""Make the columns of a stored table from those of the source, as the rules of the pipeline state it."""
