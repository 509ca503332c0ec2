"""Tencent DTS's format: protobuf."""
