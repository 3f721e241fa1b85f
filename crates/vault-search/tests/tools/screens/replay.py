#!/usr/bin/env python3
"""Runs vault-tools in terminals of fixed sizes, answers its questions, and compares the screens: replay.py BIN [--write]

BIN is the folder of the program. Each screen is compared with the file of its name beside this script; `--write` writes
the files instead. Afterwards no process of the program may be left. Needs tmux, Python 3.9 and Linux.
"""

import json
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[5] / ".ci"))
from screens import differs, quoted, screen_of, still_running

HERE = Path(__file__).resolve().parent
LINES = [f"Line {number} of a note that somebody else wrote." for number in range(1, 31)]
CHANGED = ["The first line is another one.", *LINES[1:-1], "So is the last."]


def call(tool, **arguments):
    return f"vault-tools call {tool} {quoted(json.dumps(arguments))}"


# Screens: name, columns, rows, command, answers, more of the environment.
SCREENS = [
    (
        "preview-of-2000-files",
        100,
        30,
        call("rename_note", path="Hub.md", new_path="Topics/Centre.md"),
        [("do it?", None)],
        {},
    ),
    (
        "hunk-left-out",
        100,
        50,
        "vault-tools call write_note - < ../changed.json",
        [("do it?", "p"), ("1 of 2: keep it?", "y"), ("2 of 2: keep it?", "n"), ("do it?", "y")],
        {},
    ),
    (
        "arguments-edited",
        80,
        30,
        call("append_to_note", path="Log.md", content="- done"),
        [("do it?", "e"), ("do it?", "y")],
        {"EDITOR": "sed -i s/done/finished/"},
    ),
]


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--write"]):
        sys.exit(__doc__)
    program = Path(sys.argv[1]).resolve() / "vault-tools"
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "notes"
        make_vault(vault)
        arguments = {"path": "Long.md", "mode": "replace", "content": "\n".join(CHANGED) + "\n"}
        (vault.parent / "changed.json").write_text(json.dumps(arguments))
        for name, columns, rows, command, answers, environment in SCREENS:
            screen = screen_of(program, folder, name, vault, columns, rows, command, answers, **environment)
            failed |= differs(HERE / f"{name}.txt", screen, write=bool(sys.argv[2:]))
    if left := still_running(program):
        sys.exit(f"still running: {left}")
    sys.exit(1 if failed else 0)


def make_vault(vault):
    """Two thousand notes with a link to one, and two to be changed."""
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "Hub.md").write_text("# Hub\n")
    (vault / "Log.md").write_text("# Log\n\n- begun\n")
    (vault / "Long.md").write_text("\n".join(LINES) + "\n")
    for note in range(1, 2001):
        (vault / f"Note {note:04}.md").write_text(f"# Note {note}\n\nIt belongs to [[Hub]].\n")


if __name__ == "__main__":
    main()
