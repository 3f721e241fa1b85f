"""Keys in a real keyring, the one that the session's D-Bus has: kept, shown to nobody, used, taken out again.

Run in a session of its own: dbus-run-session -- python3 keyring.py PROGRAM
"""

import json
import os
import pty
import subprocess
import sys
import tempfile
import termios
import time

PROGRAM = os.path.abspath(sys.argv[1])
KEY = "sk-a-key-of-the-tests"


def run(*args, text=None):
    done = subprocess.run([PROGRAM, *args], input=text, capture_output=True, text=True, timeout=30, env=ENV)
    assert KEY not in done.stdout + done.stderr, "the key is shown"
    return done.returncode, done.stdout, done.stderr


def at_terminal(args, typed):
    """Runs the program at a terminal, and types when it asks. What the terminal showed, and the exit code."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(PROGRAM, [PROGRAM, *args], ENV)
    shown = b""
    while b"shown): " not in shown:
        shown += os.read(terminal, 1024)
    # The question stands there a moment before the terminal stops showing what is typed.
    deadline = time.monotonic() + 10
    while termios.tcgetattr(terminal)[3] & termios.ECHO:
        assert time.monotonic() < deadline, "what is typed would be shown"
        time.sleep(0.005)
    os.write(terminal, typed)
    try:
        while part := os.read(terminal, 1024):
            shown += part
    except OSError:
        pass
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


folder = tempfile.mkdtemp()
ENV = {name: os.environ[name] for name in ("PATH", "DBUS_SESSION_BUS_ADDRESS")}
ENV.update(HOME=folder, XDG_RUNTIME_DIR=folder)
unlock = ["gnome-keyring-daemon", "--unlock", "--components=secrets"]
subprocess.run(unlock, input="password", capture_output=True, text=True, check=True, env=ENV)

model = ["--provider", "anthropic", "--model", "m"]
code, out, _ = run("config", "check", *model)
assert code == 1 and "there is no key for anthropic" in out, out

code, _, said = run("login", "anthropic", text=KEY + "\n")
assert code == 0 and "is in the system's keyring" in said, said
code, out, _ = run("config", "check", *model)
assert code == 0 and "m of anthropic at api.anthropic.com" in out, out

# The provider can be chosen, as one whose key is in a variable.
vault = os.path.join(folder, "Empty")
os.makedirs(vault)
code, _, said = run("ask", "--vault", vault, "anything")
assert code == 1 and "here you can use anthropic" in said, said

# Another one in its place, typed at a terminal that does not show it.
other = KEY + "-2"
shown, code = at_terminal(["login", "anthropic"], other.encode() + b"\n")
assert code == 0 and KEY not in shown, shown
code, out, _ = run("config", "check", *model)
assert code == 0, out

# Both APIs of one provider have one key.
assert run("login", "openai-chat", text=KEY)[0] == 0
assert run("config", "check", "--provider", "openai", "--model", "m")[0] == 0
assert run("logout", "openai")[0] == 0

# Ctrl-C keeps nothing.
shown, code = at_terminal(["login", "openai"], b"sk-half\x03")
assert code != 0 and "sk-half" not in shown, shown
code, out, _ = run("config", "check", "--provider", "openai", "--model", "m")
assert code == 1, out

# A variable goes before it, and logging out says that it is still there.
ENV["ANTHROPIC_API_KEY"] = "sk-of-the-variable"
code, _, said = run("logout", "anthropic")
assert code == 0 and "no longer" in said and "ANTHROPIC_API_KEY is still set" in said, said
del ENV["ANTHROPIC_API_KEY"]
code, _, said = run("logout", "anthropic")
assert code == 0 and "there was no key" in said, said
code, out, _ = run("config", "check", *model)
assert code == 1, out

# An editor hands one on: it is in the keyring, and the answer does not have it.
notes = os.path.join(folder, "Notes")
os.makedirs(os.path.join(notes, ".obsidian"))
editor = subprocess.Popen([PROGRAM, "acp", "--vault", notes], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV)


def asked(number, method, params):
    editor.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    editor.stdin.flush()
    answer = editor.stdout.readline()
    assert KEY not in answer, "the key is shown"
    return json.loads(answer)["result"]


asked(1, "initialize", {"protocolVersion": 1})
state = asked(2, "_vault/set_model", {"provider": "anthropic", "model": "m", "key": KEY})
assert state["key"] == "the system's keyring" and state["problem"] is None, state
assert state["host"] == "api.anthropic.com", state
state = asked(3, "_vault/set_model", {"provider": "anthropic", "model": "other"})
assert state["key"] == "the system's keyring" and state["model"] == "other", state
editor.stdin.close()
assert editor.wait(timeout=30) == 0
assert run("logout", "anthropic")[0] == 0

# Nothing on disk holds a key as text, nor does an address of one's own need a name here.
code, _, said = run("login", "https://gateway.example/v1", text=KEY)
assert code == 0 and "gateway.example" in said, said
time.sleep(0.2)
for place, _, names in os.walk(folder):
    for name in names:
        path = os.path.join(place, name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                assert KEY.encode() not in file.read(), path
print("keyring: kept, replaced, used, taken out; shown nowhere")
