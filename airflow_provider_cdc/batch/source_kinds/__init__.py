# SPDX-License-Identifier: Apache-2.0
"""Each kind of source in a module of its own: open its log, resolve its connections, check what it needs."""
