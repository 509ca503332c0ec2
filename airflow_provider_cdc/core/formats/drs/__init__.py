# SPDX-License-Identifier: Apache-2.0
"""Huawei DRS's formats: JSON, JSON-C and Avro."""
