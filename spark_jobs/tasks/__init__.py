# SPDX-License-Identifier: Apache-2.0
"""What one task does: plain functions of documents, no pyspark."""
