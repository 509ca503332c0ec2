# SPDX-License-Identifier: Apache-2.0
"""Parse DDL of Oracle and of OceanBase's Oracle tenants."""
