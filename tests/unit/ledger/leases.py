# SPDX-License-Identifier: Apache-2.0
"""Plan batches under a lease."""

from __future__ import annotations

import os
import subprocess
import sys


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Run Python code in a process of its own that imports what this one can."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stdin=subprocess.PIPE)
