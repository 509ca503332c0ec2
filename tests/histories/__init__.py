# SPDX-License-Identifier: Apache-2.0
"""Random source histories, sent as each tool sends them and applied in random batches, against a plain Python model."""
