# SPDX-License-Identifier: Apache-2.0
"""Real captures replayed and compared with the database's own content."""
