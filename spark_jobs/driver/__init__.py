# SPDX-License-Identifier: Apache-2.0
"""The driver's part of a batch: plan the apply phase, choose base states, keep table states."""
