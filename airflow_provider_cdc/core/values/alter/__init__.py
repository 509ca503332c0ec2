# SPDX-License-Identifier: Apache-2.0
"""Convert stored values as an ALTER TABLE at the source did."""
