# SPDX-License-Identifier: Apache-2.0
"""Tencent DTS's format: protobuf."""
