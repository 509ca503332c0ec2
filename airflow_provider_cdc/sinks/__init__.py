# SPDX-License-Identifier: Apache-2.0
"""Read the tables of a sink: checks, the hook and what looks at parked tables ask for them here."""
