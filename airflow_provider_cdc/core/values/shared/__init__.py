# SPDX-License-Identifier: Apache-2.0
"""Hold the code that both twins use: calendar, time zones, numbers, character sets, labels, WKB."""
