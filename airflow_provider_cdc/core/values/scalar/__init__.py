# SPDX-License-Identifier: Apache-2.0
"""Convert one value at a time: the plain twin of ``columnar``, its reference and its fallback.

Each module has a twin of the same name in ``columnar``: ``convert`` (one converter for each encoding), ``temporal``,
``binary``. ``json_tokens`` reads a token, ``to_target`` puts its value into the column's Arrow type. Begin to read
here: this is the definition of every encoding, ``columnar`` gives the same results for usual input, only faster.
``tests/unit/core/values/test_agreement.py`` compares them.
"""
