"""ATTEND_WITHOUT="numpy torch" tests as if these packages were not installed."""
import os
import sys

for name in os.environ.get("ATTEND_WITHOUT", "").split():
    sys.modules[name] = None
