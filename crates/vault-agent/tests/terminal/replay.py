#!/usr/bin/env python3
"""Runs vault-agent in terminals of fixed sizes with a scripted model, and compares the screens: replay.py BIN [--write]

BIN is the folder of vault-agent and vault-index. Each screen is compared with the file of its name beside this script; `--write` writes
the files instead. Afterwards no process of the program may be left. Needs tmux, Python 3.9 and Linux.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
sys.path[:0] = [str(ROOT / ".ci"), str(HERE)]
from screens import Keys, differs, folders, screen_of, still_running
from scripted_model import ScriptedModel, Silent

COMPOST = "Garden/Compost.md"
CTRL_C, CTRL_D, ESCAPE = Keys("C-c"), Keys("C-d"), Keys("Escape")
LAST_KEY = "edit the arguments"


IDEAS = {
    "version": "1.0",
    "goal": "A note in Projects for each idea",
    "riskLevel": "writes",
    "steps": [
        {"id": "ideas", "tool": "util.parseMarkdownBullets", "args": {"text": "${selection}"}},
        {"id": "notes", "tool": "vault.createFile", "foreach": {"from": "$steps.ideas.items", "itemName": "idea"},
         "args": {"path": "Projects/${idea.text}.md", "content": "# ${idea.text}\n"}},
        {"id": "inbox", "tool": "append_to_note", "args": {"path": "Inbox.md", "content": "- The ideas are in Projects"}},
    ],
}


def append(line):
    return ("append_to_note", {"path": "Inbox.md", "content": line})


def prompt(text):
    """Types a message at the next prompt."""
    return ("\x1b[?2004h", text)


def turn_ended(tokens):
    return (f"{tokens} tokens", Keys())


# Screens: name, command, the model's replies, and what is waited for and typed.
SCREENS = [
    (
        "ask",
        'vault-agent ask "how do I keep the compost going?"',
        [
            [("search_notes", {"query": "turn the compost"})],
            [("read_note", {"path": COMPOST})],
            f"Turn it when it has gone cold [{COMPOST}:1], says \"once a week in summer\" [{COMPOST}:1]. See also "
            "[Garden/Heaps.md:3].\n",
        ],
        [],
    ),
    (
        "plan-step-left-out",
        "vault-agent plan 'a note in Projects for each idea' --selection '- Bench\n- Pond\n- Hedge'",
        [json.dumps(IDEAS)],
        [("Run this plan?", "p"), ("keep it?", "y"), ("keep it?", "n"), ("keep it?", "y"), ("keep it?", "n"),
         ("Run this plan?", "y"), ("Keep it as a macro", "ideas")],
    ),
    ("plan-undone", "vault-agent undo", [], [("?", "y")]),
    ("macro-run-without-a-model", "vault-agent macro run ideas --selection '- Kiln'", [], [("Run this plan?", "y")]),
    (
        "chat-answer",
        "vault-agent chat",
        [
            [("search_notes", {"query": "turn the compost"})],
            [("read_note", {"path": COMPOST})],
            "# Compost\n\nYour notes say:\n\n- keep it **as damp as a wrung-out sponge**\n- turn it when it is cold "
            f"[{COMPOST}:1]\n\n| layer | what |\n|---|---|\n| brown | leaves, card |\n| green | grass, peelings |\n",
        ],
        [prompt("how do I keep the compost going?"), turn_ended("3702"), prompt("/quit")],
    ),
    (
        "chat-yes",
        "vault-agent chat",
        [[append("- turn the compost")], "It is in your inbox."],
        [prompt("remind me to turn the compost"), (LAST_KEY, Keys("y")), turn_ended("2468"), prompt("/undo"),
         ("no (Esc)", Keys("y")), ("undone", Keys()), prompt("/quit")],
    ),
    (
        "chat-yes-for-the-session",
        "vault-agent chat",
        [[append("- buy twine")], [append("- buy pots")], "Both are in your inbox."],
        [prompt("I need twine and pots"), (LAST_KEY, Keys("a")), turn_ended("3702"), prompt("/quit")],
    ),
    (
        "chat-no-with-a-reason",
        "vault-agent chat",
        [[append("- sow peas")], [("append_to_note", {"path": "Ideas.md", "content": "- sow peas"})], "Then there."],
        [prompt("remember to sow peas"), (LAST_KEY, Keys("n")), ("what instead?", "into Ideas.md"),
         (LAST_KEY, Keys("y")), turn_ended("3702"), prompt("/quit")],
    ),
    (
        "chat-arguments-edited",
        "EDITOR='sed -i s/peas/beans/' vault-agent chat",
        [[append("- sow peas")], "Noted, with your change."],
        [prompt("remember to sow peas"), (LAST_KEY, Keys("e")), ("+- sow beans", Keys()), (LAST_KEY, Keys("y")),
         turn_ended("2468"), prompt("/quit")],
    ),
    (
        "chat-hunk-left-out",
        "vault-agent chat",
        [[("write_note", {"path": "Plot.md", "mode": "replace", "content": None})], "Done but for the last line."],
        [prompt("tidy up my plot"), ("leave out parts", Keys("p")), ("1 of 2: keep it?", "y"),
         ("2 of 2: keep it?", "n"), (LAST_KEY, Keys()), ("leave out parts", Keys("y")), turn_ended("2468"),
         prompt("/quit")],
    ),
    (
        "chat-items-ticked",
        "vault-agent chat --toolset chat",
        [[("vault_search", {"query": "compost"})], "I looked at what you shared."],
        [prompt("what do I say about compost?"), (LAST_KEY, Keys("y")), ("Enter to share]", "w 1"),
         ("Enter to share]", "2 3"), ("Enter to share]", ""), turn_ended("2468"), prompt("/quit")],
    ),
    (
        "chat-files-ticked",
        "vault-agent chat --toolset chat",
        [[("file_read", {"filePaths": ["Inbox.md", COMPOST]})], "I read what you shared."],
        [prompt("what is in my inbox?"), (LAST_KEY, Keys("y")), ("Enter to share]", "1"), ("Enter to share]", ""),
         turn_ended("2468"), prompt("/quit")],
    ),
    (
        "chat-question",
        "vault-agent chat",
        [[append("- sow peas")], "I left it."],
        [prompt("remember to sow peas"), (LAST_KEY, None), turn_ended("2468"), prompt("/quit")],
    ),
    (
        "chat-all-denied",
        "vault-agent chat",
        [[append("- one"), append("- two"), append("- three")]],
        [prompt("three reminders"), (LAST_KEY, Keys("y")), ("2 of 3", Keys()), (LAST_KEY, CTRL_C),
         ("stopped; the conversation is kept", Keys()), prompt("/quit")],
    ),
    (
        "chat-turn-stopped",
        "vault-agent chat",
        [Silent("Let me think about this. It\n\nmay take"), "I am still here."],
        [prompt("what is the best month?"), ("may take", CTRL_C), ("stopped; the conversation is kept", Keys()),
         prompt("never mind"), turn_ended("1234"), prompt("/quit")],
    ),
    (
        "chat-left-with-a-question",
        "vault-agent chat",
        [[append("- water the seedlings")]],
        [prompt("remind me to water the seedlings"), (LAST_KEY, CTRL_D), ("the question stays open", Keys())],
    ),
    (
        "chat-resumed",
        "vault-agent resume",
        ["It is in your inbox."],
        [(LAST_KEY, Keys("y")), turn_ended("2468"), prompt("/quit")],
    ),
]


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--write"]):
        sys.exit(__doc__)
    program = Path(sys.argv[1]).resolve() / "vault-agent"
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "demo"
        shutil.copytree(ROOT / "testdata" / "vaults" / "demo", vault)
        lines = [f"Row {row}: empty." for row in range(1, 21)]
        (vault / "Plot.md").write_text("\n".join(lines) + "\n")
        tidied = "\n".join(["Row 1: peas.", *lines[1:-1], "Row 20: nettles."]) + "\n"
        # With all vectors: what is still pending would be said.
        environment = {**os.environ, "VAULT_DIR": str(vault), **folders(folder)}
        subprocess.run([program.parent / "vault-index", "sync"], env=environment, check=True, capture_output=True)
        for name, command, replies, answers in SCREENS:
            for calls in replies:
                for _, arguments in calls if isinstance(calls, list) else []:
                    if arguments.get("content", "") is None:
                        arguments["content"] = tidied
            with ScriptedModel(replies) as model:
                environment = {"VAULT_AGENT_PROVIDER": model.address, "VAULT_AGENT_MODEL": "scripted", "TZ": "UTC"}
                screen = screen_of(program, folder, name, vault, 90, 200, command, answers, **environment)
            # The id of a conversation is chosen at random.
            screen = re.sub(r"\b[0-9a-f]{12}\b", "3f2a91c07d5e", screen).replace(folder, "~")
            failed |= differs(HERE / f"{name}.txt", screen, write=bool(sys.argv[2:]))
    if left := still_running(program):
        sys.exit(f"still running: {left}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
