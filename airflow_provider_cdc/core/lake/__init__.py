# SPDX-License-Identifier: Apache-2.0
"""Files of the lake that both sides write or read: durable local files, objects, segments of packets."""
