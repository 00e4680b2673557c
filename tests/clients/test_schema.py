"""schemathesis: requests of all routes by /openapi.json, right ones and wrong ones. No answer has a status of 5xx but 503,
and all are as they are described; requests that break their schema are refused. Whether all that keep it are accepted is
not checked: which ids, languages and images there are, and what goes together, is in no schema."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("schemathesis", reason="the package schemathesis is not installed")

HOOKS = pathlib.Path(__file__).with_name("schema_hooks.py")


def test_answers_are_as_they_are_described(tiny, tmp_path):
    command = [os.path.join(os.path.dirname(sys.executable), "schemathesis"), "run", tiny.url + "/openapi.json", "-H",
               "Authorization: Bearer secret", "--phases", "coverage,fuzzing", "-n",
               os.environ.get("ATTEND_TEST_REQUESTS", "10"), "--exclude-checks", "positive_data_acceptance",
               "--continue-on-failure", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "SCHEMATHESIS_HOOKS": str(HOOKS), "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) generated", done.stdout).group(1)) > 1000
