# SPDX-License-Identifier: Apache-2.0
"""Define the conditions that sensors and triggers wait for, and look at them without starving each other."""
