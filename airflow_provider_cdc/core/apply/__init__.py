# SPDX-License-Identifier: Apache-2.0
"""Changes and timeline to what one table must become."""
