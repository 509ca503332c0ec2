# SPDX-License-Identifier: Apache-2.0
"""Show the product at work: a web shop's recorded log from files into tables that must equal the database."""
