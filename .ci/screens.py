"""Runs a command in a tmux terminal of a fixed size, and compares its screen with one recorded in the repository.

Needs tmux, Python 3.9 and Linux.
"""

import difflib
import os
import subprocess
import time
from pathlib import Path


class Keys(str):
    """Keys to press without Enter, by tmux's names for them; empty: only wait for the text."""


def screen_of(program, folder, name, vault, columns, rows, command, answers=(), **environment):
    """Returns the screen of a terminal of this size after a command.

    `answers` are pairs of a text to wait for and an answer to type. If an answer is None, the result is the screen of
    the question with this text, and then n is typed.
    """
    environment = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HOME": folder,
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        **folders(folder),
        **environment,
    }
    tmux = ["tmux", "-f", "/dev/null", "-S", f"{folder}/{name}"]

    def run(*arguments):
        return subprocess.run([*tmux, *arguments], env=environment, check=True, capture_output=True, text=True).stdout

    def wait_for(happens):
        end = time.monotonic() + 300
        while not (found := happens()):
            if time.monotonic() > end:
                raise TimeoutError(f"{command}:\n{run('capture-pane', '-p', '-J')}")
            time.sleep(0.05)
        return found

    def screen_ending_with(ending):
        screen = run("capture-pane", "-p", "-J").rstrip()
        return screen if screen.endswith(ending) else None

    shown = Path(folder) / f"{name}.shown"
    shown.touch()
    start = f"tmux set status off; tmux pipe-pane 'cat >> {shown}'"
    script = Path(folder) / f"{name}.sh"
    script.write_text(f"printf '%s\\n' {quoted('$ ' + command)}\n{command}\nprintf '$ '\nexec sleep 600\n")
    run("new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(vault), f"{start}; . {script}")
    try:
        at, question = 0, None
        for text, answer in answers:
            # Search only after the text of the last answer, because questions repeat.
            at = wait_for(lambda: shown.read_text(errors="replace").find(text, at) + 1) + len(text)
            if isinstance(answer, Keys):
                if answer:
                    run("send-keys", answer)
                continue
            if answer is None:
                question = wait_for(lambda: screen_ending_with("]") or screen_ending_with(text))
            run("send-keys", "-l", answer if answer is not None else "n")
            run("send-keys", "Enter")
        screen = wait_for(lambda: screen_ending_with("\n$"))
        return question or screen
    finally:
        run("kill-server")


def folders(folder):
    """Returns variables that place the user's folders below a folder."""
    return {f"XDG_{name.upper()}_HOME": f"{folder}/{name}" for name in ("cache", "config", "state")}


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def differs(file, screen, write):
    """Returns whether a screen differs from the recorded one, and prints the difference. `write` records it instead."""
    screen = "\n".join(line.rstrip() for line in screen.rstrip().split("\n")) + "\n"
    if write:
        file.write_text(screen)
        return False
    expected = file.read_text()
    difference = list(difflib.unified_diff(expected.splitlines(), screen.splitlines(), file.name, "now", lineterm=""))
    print(f"{file.stem}: {'differs' if difference else 'as expected'}")
    print("".join(f"{line}\n" for line in difference), end="")
    return bool(difference)


def still_running(program):
    """Returns the ids of the processes of a program that have not ended after ten seconds."""

    def program_of(pid):
        try:
            return os.readlink(f"/proc/{pid}/exe")
        except OSError:
            return None

    deadline = time.monotonic() + 10
    while left := [pid for pid in os.listdir("/proc") if pid.isdigit() and program_of(pid) == str(program)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return left
