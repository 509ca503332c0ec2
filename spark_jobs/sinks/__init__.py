# SPDX-License-Identifier: Apache-2.0
"""Write tables: one folder for each kind of sink."""
