# SPDX-License-Identifier: Apache-2.0
"""The house's rules, checked on its files rather than on its behaviour."""
