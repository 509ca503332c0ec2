# SPDX-License-Identifier: Apache-2.0
"""Files of a pipeline in the lake: documents, the change log, pending deletes."""
