"""The command-line program llm against the proxy: `llm_client.py PROGRAM`, where PROGRAM is scripted_backend."""

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from parrot import KEY, MODEL, TOWN, TWO_CALLS, URL, case, run, wait_for_no_replies

folder = tempfile.TemporaryDirectory()
LOOK = 'def look(at: str) -> str:\n    "Looks somewhere."\n    return "crimson " + at\n'
COMMAND = [str(Path(sys.executable).parent / "llm"), "prompt", "--key", KEY]
ENVIRONMENT = {**os.environ, "LLM_USER_PATH": folder.name}
model = {"model_id": "p", "model_name": MODEL, "api_base": URL, "supports_tools": True, "supports_schema": True}
model["api_key_name"] = "p"
# JSON is YAML too.
Path(folder.name, "extra-openai-models.yaml").write_text(json.dumps([model]))


def llm(*arguments, fails=False):
    done = subprocess.run(COMMAND + list(arguments), env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert (done.returncode != 0) == fails, done
    return done.stderr if fails else done.stdout.strip()


@case
def text_and_a_second_turn():
    assert llm("-m", "p", "say Hëllo.") == "Hëllo."
    assert llm("-m", "p", "--no-stream", "say Hëllo.") == "Hëllo."
    assert llm("-c", "say Again.") == "Again."


@case
def tools():
    assert llm("-m", "p", "--functions", LOOK, TWO_CALLS).count("crimson") == 2


@case
def structured_output():
    assert json.loads(llm("-m", "p", "--schema", "town str, number int", TOWN)) == {"town": "Oslo", "number": 3}


@case
def errors():
    assert "refused, as it was told to" in llm("-m", "p", "refuse context-too-long", fails=True)
    assert "ended early" in llm("-m", "p", "say Hel\ncut", fails=True)


@case
def cancelled():
    asked = subprocess.Popen(COMMAND + ["-m", "p", "say Hëllo you.\nwait"], env=ENVIRONMENT, stdout=subprocess.PIPE)
    assert asked.stdout.read(1) == b"H"
    asked.kill()
    asked.wait()
    wait_for_no_replies()


run(f"llm {version('llm')}")
folder.cleanup()
