# SPDX-License-Identifier: Apache-2.0
"""Canal's formats: flat JSON and protobuf."""
