# SPDX-License-Identifier: Apache-2.0
"""OceanBase Migration Service's formats (OMS), one for each method."""
