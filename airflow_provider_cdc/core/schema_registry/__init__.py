# SPDX-License-Identifier: Apache-2.0
"""Ask a schema registry; both sides do, formats never."""
