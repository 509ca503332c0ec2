# SPDX-License-Identifier: Apache-2.0
"""Read and write the logs of sources: Kafka, and Canal's own server."""
