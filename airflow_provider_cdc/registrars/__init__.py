# SPDX-License-Identifier: Apache-2.0
"""Register tables in catalogs of others, one module for each kind."""
