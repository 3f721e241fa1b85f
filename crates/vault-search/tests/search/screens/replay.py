#!/usr/bin/env python3
"""Runs vault-search in terminals of fixed sizes and compares the screens: replay.py BIN [--write]

BIN is the folder of the program. A vault of 3,000 notes is generated, searched for the first time and then twice more; each
screen is compared with the file of its name beside this script, with scores, times and the number of passages without a
vector masked, which depend on the machine. `--write` writes the files instead. Afterwards no process of the program may be left. Needs tmux, Python 3.9 and Linux.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[5] / ".ci"))
from screens import differs, screen_of, still_running

HERE = Path(__file__).resolve().parent
# Screens: name, columns, rows, arguments of vault-search.
SCREENS = [
    ("first-search", 100, 40, "a heron at the river"),
    ("compact", 100, 24, "--compact a heron at the river"),
    ("small", 80, 24, "--best-last a heron at the river"),
]
NOTES = 3000
WORDS = """apple bread bridge cellar chair cloud copper corner cotton dough engine evening feather field flour garden glass
hammer harbour hill kettle ladder lamp letter linen market meadow mirror needle orchard oven paper pepper pillow plough
pocket rope saddle salt shelf silver soup spoon stone string summer table thread tower valley village wagon walnut
window winter wood wool""".split()


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--write"]):
        sys.exit(__doc__)
    program = Path(sys.argv[1]).resolve() / "vault-search"
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "notes"
        make_vault(vault)
        for name, columns, rows, arguments in SCREENS:
            command = f"vault-search {arguments}"
            screen = screen_of(program, folder, name, vault, columns, rows, command, VAULT_BACKGROUND="0")
            failed |= differs(HERE / f"{name}.txt", masked(screen), write=bool(sys.argv[2:]))
    if left := still_running(program):
        sys.exit(f"still running: {left}")
    sys.exit(1 if failed else 0)


def make_vault(vault):
    """Notes of the same words in another order each; of every two hundredth a heron is told, more and more often."""
    number = 1

    def words(count):
        nonlocal number
        chosen = []
        for _ in range(count):
            number = (number * 1103515245 + 12345) % 2**31
            chosen.append(WORDS[(number >> 16) % len(WORDS)])
        return " ".join(chosen)

    for note in range(NOTES):
        lines = [words(12).capitalize() + "." for _ in range(6)]
        if note % 200 == 0:
            for line in range(note // 600 + 1):
                lines[5 - line] = f"A heron stood {words(2 + note // 200)}, at the river."
        file = vault / f"Year {note % 7 + 1}" / f"{words(2).capitalize()} {note}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {file.stem}\n\n## Part {note % 3 + 1}\n\n" + "\n".join(lines) + "\n")
        os.utime(file, (1_600_000_000 + note, 1_600_000_000 + note))


def masked(screen):
    screen = re.sub(r"\b[01]\.\d\d\b", "#.##", screen)
    screen = re.sub(r"note: \d+ passages", "note: # passages", screen)
    return re.sub(r"in about [0-9a-z ]+", "in about #", screen)


if __name__ == "__main__":
    main()
