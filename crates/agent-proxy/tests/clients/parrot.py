"""What the clients for Python share: the model that says what it is told (scripted_backend, the first argument), behind
the proxy, and a list of cases that `run` runs."""

import asyncio
import inspect
import json
import subprocess
import sys
import time
import urllib.request

# One that keeps nothing, and one that does.
servers = [
    subprocess.Popen([sys.argv[1], *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for options in ([], ["--store"])
]
URL, STORE_URL = [server.stdout.readline().strip() for server in servers]
KEY = "a key"
MODEL = "parrot"
TWO_CALLS = 'say I look.\ncall look {"at": "a {<ä>} b"}\ncall look {"at": "c"}\nthen\nrepeat\n'
PLACES = ["a {<ä>} b", "c"]
TOWN = 'say {"town": "Oslo", "number": 3}'
CASES = []


def case(function):
    CASES.append(function)
    return function


def expect(error, function):
    try:
        got = function()
    except error as raised:
        return raised
    raise AssertionError(f"no {error.__name__}, but {got}")


def wait_for_no_replies():
    """Waits until the proxy has given up every reply."""
    for _ in range(100):
        with urllib.request.urlopen(URL.removesuffix("/v1") + "/health") as health:
            if json.load(health)["replies"] == 0:
                return
        time.sleep(0.1)
    raise AssertionError("a reply goes on that nobody reads")


def run(package):
    # One loop for all: packages keep connections from one case to the next.
    loop = asyncio.new_event_loop()
    for function in CASES:
        if inspect.iscoroutinefunction(function):
            loop.run_until_complete(function())
        else:
            function()
        print(f"{function.__name__}: ok")
    for server in servers:
        server.stdin.close()
        assert server.wait(timeout=15) == 0
    print(f"{package}: {len(CASES)} passed, 0 failed")
