#!/usr/bin/env python3
"""Draws the pictures of README.md and of the manual from the output of the programs: docs/pictures.py [BIN]

BIN is the folder of the release binaries vault-search, vault-index and vault-tools. The programs run in a
pseudo-terminal on a copy of testdata/vaults/demo, and only their output is drawn. Writes session.svg and graph.svg to
docs/book/src/pictures. Also writes agent.svg, from the screens in crates/vault-agent/tests/terminal, which continuous
integration replays; without BIN, writes only this one. Needs only Python 3.9 on Linux or macOS.
"""

import fcntl
import json
import math
import os
import pty
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "book" / "src" / "pictures"
DEMO = ROOT / "testdata" / "vaults" / "demo"
SCREENS = ROOT / "crates" / "vault-agent" / "tests" / "terminal"
COLUMNS = 92
# The commands of the session. With their output they are at most 15 lines, so that a reader grasps them at a glance.
SESSION = [
    "vault-tools rename Magnitudes 'Star brightness' --yes",
    "vault-index backlinks 'Star brightness'",
    "vault-tools undo --yes",
    "vault-index backlinks Magnitudes",
]
MAX_LINES = 15

# The screens in the picture of vault-agent.
AGENT = ["ask", "chat-yes"]


def main():
    if len(sys.argv) not in (1, 2):
        sys.exit(__doc__)
    lines = [line for name in AGENT for line in [*screen_lines(name), []]][:-1]
    title = "A terminal: a question and its answer with sources, a change after approval, and its undo"
    (PICTURES / "agent.svg").write_text(terminal_svg(lines, title))
    if len(sys.argv) == 2:
        draw_session_and_graph(Path(sys.argv[1]).resolve())


def screen_lines(name):
    """Returns a recorded screen without its last prompt, with colours for input, diffs and notices."""
    marks = {"$ ": "prompt", "> ": "prompt", "+": "green", "-": "red", "tool:": "dim", "note:": "dim", "not found:": "yellow"}
    lines = []
    for line in (SCREENS / f"{name}.txt").read_text().rstrip("$\n").split("\n"):
        mark = next((mark for mark in marks if line.startswith(mark)), "")
        if marks.get(mark) == "prompt":
            lines.append([("prompt", mark), ("typed", line[len(mark):])])
        else:
            lines.append([(marks.get(mark, ""), line)])
    return lines


def draw_session_and_graph(binaries):
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "notes"
        shutil.copytree(DEMO, vault)
        environment = {
            "PATH": f"{binaries}:/usr/bin:/bin",
            "HOME": folder,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "XDG_CACHE_HOME": f"{folder}/cache",
            "XDG_CONFIG_HOME": f"{folder}/config",
            "XDG_STATE_HOME": f"{folder}/state",
        }
        # The progress of the first sync is not part of the picture.
        subprocess.run(["vault-index", "sync"], cwd=vault, env=environment, check=True, capture_output=True)
        graph = subprocess.run(
            ["vault-index", "graph", "--format", "json"], cwd=vault, env=environment, check=True, capture_output=True
        )
        lines = []
        for command in SESSION:
            lines.append([("prompt", "$ "), ("typed", command)])
            lines.extend(lines_of(run(command, vault, environment)))
    if len(lines) > MAX_LINES:
        sys.exit(f"the session has {len(lines)} lines, more than {MAX_LINES}")
    title = "A terminal: a note is renamed, the links to it follow, and the rename is undone"
    (PICTURES / "session.svg").write_text(terminal_svg(lines, title))
    (PICTURES / "graph.svg").write_text(graph_svg(json.loads(graph.stdout)))


def run(command, folder, environment):
    """Runs a shell command in a terminal and returns its output."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
        os.chdir(folder)
        os.execve("/bin/sh", ["sh", "-c", command], environment)
    output = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # On Linux, the other end is closed.
            break
        if not part:
            break
        output += part
    _, status = os.waitpid(pid, 0)
    if status != 0:
        sys.exit(f"{command}: status {status}\n{output.decode(errors='replace')}")
    return output.decode()


COLOURS = {30: "dim", 31: "red", 32: "green", 33: "yellow", 34: "blue", 35: "magenta", 36: "cyan"}


def lines_of(output):
    """Returns lines as lists of (classes, text), wrapped at the width of the terminal."""
    output = re.sub(r"\x1b\]8;[^\x07\x1b]*(?:\x07|\x1b\\)", "", output)  # links
    lines, styles = [], set()
    for line in output.replace("\r\n", "\n").rstrip("\n").split("\n"):
        line = re.split(r"\r(?:\x1b\[2K)?", line)[-1]
        runs, width = [], 0
        for part in re.split(r"(\x1b\[[0-9;]*[A-Za-z])", line):
            if part.startswith("\x1b"):
                if part.endswith("m"):
                    apply(part[2:-1], styles)
                continue
            while part:
                room = COLUMNS - width
                runs.append((" ".join(sorted(styles)), part[:room]))
                width += len(part[:room])
                part = part[room:]
                if part:
                    lines.append(runs)
                    runs, width = [], 0
        lines.append(runs)
    return lines


def apply(codes, styles):
    for code in (int(code or 0) for code in codes.split(";")):
        if code == 0:
            styles.clear()
        elif code in (1, 2, 3):
            styles.add({1: "bold", 2: "dim", 3: "italic"}[code])
        elif code == 22:
            styles.difference_update({"bold", "dim"})
        elif code in COLOURS:
            styles.difference_update(set(COLOURS.values()))
            styles.add(COLOURS[code])
        elif code == 39:
            styles.difference_update(set(COLOURS.values()))


ADVANCE, LEADING, MARGIN, BAR = 8.2, 18, 18, 30


def terminal_svg(lines, title):
    """Draws a dark window, which is readable on light and on dark pages."""
    width = round(COLUMNS * ADVANCE + 2 * MARGIN)
    height = BAR + LEADING * len(lines) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' role="img">',
        f"<title>{escape(title)}</title>",
        "<style>text{font:13.5px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        "fill:#d6dbe2;white-space:pre}.bold{font-weight:700;fill:#fff}.dim{fill:#8b949e}.italic{font-style:italic}"
        ".prompt{fill:#7ee787}.typed{fill:#fff}.red{fill:#ff8f87}.green{fill:#7ee787}.yellow{fill:#e3b341}"
        ".blue{fill:#79c0ff}.magenta{fill:#d2a8ff}.cyan{fill:#76e3ea}</style>",
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="9" fill="#161b22" stroke="#6e7681"/>',
    ]
    for at, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        parts.append(f'<circle cx="{MARGIN + 4 + 18 * at}" cy="16" r="5" fill="{colour}"/>')
    for number, runs in enumerate(lines):
        column = 0
        for classes, text in runs:
            if text.strip():
                x, length = MARGIN + column * ADVANCE, len(text) * ADVANCE
                attribute = f' class="{classes}"' if classes else ""
                parts.append(
                    f'<text x="{x:.1f}" y="{BAR + LEADING * (number + 0.75):.1f}" textLength="{length:.1f}"'
                    f'{attribute} xml:space="preserve">{escape(text)}</text>'
                )
            column += len(text)
    return "\n".join([*parts, "</svg>\n"])


# LABELLED: notes with at least this many neighbours get a label.
WIDTH, HEIGHT, LABELLED = 820, 520, 4
# Readable on white and on black.
PALETTE = ["#d1495b", "#2e86ab", "#3f9142", "#b5761f", "#8e5ea2", "#0f9b8e", "#c4568f", "#7a7f87", "#5c7cfa", "#a0522d"]


def graph_svg(graph):
    """Draws the notes from `vault-index graph`: one colour per folder, and labels for the most linked notes."""
    paths = [node["path"] for node in graph["nodes"] if node["kind"] == "note"]
    position_of = {path: at for at, path in enumerate(paths)}
    edges = {
        tuple(sorted((position_of[edge["source"]], position_of[edge["target"]])))
        for edge in graph["edges"]
        if edge["source"] in position_of and edge["target"] in position_of and edge["source"] != edge["target"]
    }
    linked = [at for at in range(len(paths)) if any(at in edge for edge in edges)]
    renumbered = {at: number for number, at in enumerate(linked)}
    paths = [paths[at] for at in linked]
    edges = sorted((renumbered[a], renumbered[b]) for a, b in edges)
    points = layout(len(paths), edges)
    degrees = [sum(at in edge for edge in edges) for at in range(len(paths))]
    folders = sorted({path.split("/")[0] for path in paths if "/" in path})
    colour_of = {folder: PALETTE[at % len(PALETTE)] for at, folder in enumerate(folders)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' role="img">',
        f"<title>The link graph of the demo vault: {len(paths)} notes, {len(edges)} pairs that link</title>",
        "<style>line{stroke:#8b949e;stroke-opacity:.45}circle{stroke:#fff;stroke-width:1}"
        "text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1f2328}.halo{stroke:#fff;stroke-width:3px;"
        "stroke-linejoin:round}@media (prefers-color-scheme:dark){circle{stroke:#0d1117}text{fill:#e6edf3}"
        ".halo{stroke:#0d1117}}</style>",
    ]
    for a, b in edges:
        (x1, y1), (x2, y2) = points[a], points[b]
        parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')
    for (x, y), path, degree in zip(points, paths, degrees):
        colour = colour_of.get(path.split("/")[0], "#7a7f87")
        radius = 3 + 1.5 * math.sqrt(degree)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}"><title>{escape(path)}</title></circle>')
    taken = []
    for at in sorted(range(len(paths)), key=lambda at: (-degrees[at], paths[at])):
        (x, y), name = points[at], Path(paths[at]).stem
        if name == "Index":
            name = str(Path(paths[at]).with_suffix(""))
        y -= 6 + 1.5 * math.sqrt(degrees[at])
        half = 3.4 * len(name)
        # Skip labels that would cover another label or extend beyond the picture.
        if degrees[at] < LABELLED or x < half or x + half > WIDTH:
            continue
        if any(abs(x - other_x) < half + other_half and abs(y - other_y) < 14 for other_x, other_y, other_half in taken):
            continue
        taken.append((x, y, half))
        for halo in (' class="halo"', ""):
            parts.append(f'<text{halo} x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def layout(count, edges):
    """Returns a force-directed layout (Fruchterman and Reingold) with a fixed seed, scaled to the picture."""
    chance = random.Random(7)
    points = [[chance.uniform(-1, 1), chance.uniform(-1, 1)] for _ in range(count)]
    ideal = 1.6 / math.sqrt(count)
    for step in range(400):
        forces = [[-0.12 * x, -0.12 * y] for x, y in points]  # a weak pull to the middle
        for a in range(count):
            for b in range(a):
                dx, dy = points[a][0] - points[b][0], points[a][1] - points[b][1]
                push = ideal**2 / max(dx * dx + dy * dy, 1e-6)
                for node, sign in ((a, 1), (b, -1)):
                    forces[node][0] += sign * dx * push
                    forces[node][1] += sign * dy * push
        for a, b in edges:
            dx, dy = points[a][0] - points[b][0], points[a][1] - points[b][1]
            pull = math.hypot(dx, dy) / ideal
            for node, sign in ((a, -1), (b, 1)):
                forces[node][0] += sign * dx * pull * 0.5
                forces[node][1] += sign * dy * pull * 0.5
        heat = 0.1 * (1 - step / 400)
        for point, (fx, fy) in zip(points, forces):
            scale = min(heat, math.hypot(fx, fy)) / max(math.hypot(fx, fy), 1e-9)
            point[0] += fx * scale
            point[1] += fy * scale
    left, top = (min(point[axis] for point in points) for axis in (0, 1))
    right, bottom = (max(point[axis] for point in points) for axis in (0, 1))
    return [
        (70 + (x - left) / (right - left) * (WIDTH - 140), 30 + (y - top) / (bottom - top) * (HEIGHT - 50))
        for x, y in points
    ]


if __name__ == "__main__":
    main()
