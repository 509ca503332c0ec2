# SPDX-License-Identifier: Apache-2.0
"""Test what each kind of table has to do, and that the contract takes another kind."""
