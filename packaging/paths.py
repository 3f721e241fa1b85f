#!/usr/bin/env python3
"""Prints what a person sees from the lines of README to the first search: packaging/paths.py PROGRAMS

PROGRAMS is the folder that test.py takes. Each way has a fresh home folder with the demo vault, and a PATH with the
basic programs of a system and one installer: curl, pip or npm. The lines that install are those of README; a server on
this machine is the release page and the registries. Fails if a search does not find the note. Needs Linux on x86-64,
Python 3.11, curl and npm.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
from test import NOTES, REPOSITORY, ROOT, Server, make_release

# Of coreutils, grep, gzip, libc-bin, sed and tar.
BASIC = "cat chmod cp cut dirname env grep gzip ldd ln mkdir mktemp mv readlink rm sed sh sha256sum tar uname".split()
# The installer: its programs, and a line that comes first.
WAYS = {
    "curl": (["curl"], None),
    "pip": (["python3"], "python3 -m venv ~/env"),
    "npm": (["node", "npm"], None),
}
# The programs of the tests are slower than those of a release, so the search waits until each passage has its vector.
SEARCH = 'vault-search --vault ~/Notes -n 1 --wait 300 "keeping money aside in case we lose a job"'


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    block = re.search(r"Once 0\.1 is published.*?```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    lines = [line.partition("  #")[0].strip() for line in block.splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder).resolve()
        make_release(Path(sys.argv[1]).resolve(), scratch, "")
        with Server(scratch) as server:
            for way, (programs, first) in WAYS.items():
                line = next(line for line in lines if line.startswith(way))
                walk(way, programs, [first, line, SEARCH], scratch / "homes" / way, server)


def walk(way, programs, steps, home, server):
    (home / "programs").mkdir(parents=True)
    for name in [*BASIC, *programs]:
        program = sys.executable if name == "python3" else shutil.which(name)
        (home / "programs" / name).symlink_to(Path(program).resolve())
    shutil.copytree(NOTES, home / "Notes")
    folders = [home / ".local/bin", home / "env/bin", home / "npm/bin", home / "programs"]
    environment = {
        "HOME": str(home), "PATH": ":".join(map(str, folders)), "VAULT_AGENT_RELEASES": f"{server.url}/release",
        "PIP_INDEX_URL": f"{server.url}/pypi/", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "npm_config_registry": f"{server.url}/npm/", "npm_config_prefix": str(home / "npm"),
    }
    print(f"== only {way}")
    for step in filter(None, steps):
        command = step.replace("https://github.com/OWNER/NAME/releases/latest/download", f"{server.url}/manifests")
        start = time.monotonic()
        done = subprocess.run(["/bin/sh", "-c", command], env=environment, cwd=home, text=True, timeout=600,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output = done.stdout.replace(str(home), "~").replace(server.url, f"https://github.com/{REPOSITORY}")
        print(f"$ {step}\n{output.rstrip()}\n-- {time.monotonic() - start:.1f} s", flush=True)
        if done.returncode:
            sys.exit(f"exit code {done.returncode}")
    if "Money/Emergency fund.md" not in done.stdout:
        sys.exit("the search did not find the note")


if __name__ == "__main__":
    main()
