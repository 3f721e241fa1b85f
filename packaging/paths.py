#!/usr/bin/env python3
"""Prints what a person sees from the lines of README to the first search, with one installer alone:
    packaging/paths.py PROGRAMS     with curl, pip and npm
    packaging/paths.py cargo        with cargo: compiles the commit that is checked out, for about ten minutes

PROGRAMS is the folder that test.py takes. Each way has a fresh home folder with the demo vault, and a PATH with the
basic programs of a system and the installer. The lines that install are those of README. A server on this machine is
the release page and the registries; cargo has a clone, a C compiler and crates.io. Fails if a search does not find the
note. Needs Linux on x86-64, Python 3.11, curl and npm, or cargo, cc and git.
"""

import re
import resource
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
# The installer: its programs, a line that comes first, and the folder in which its lines run.
WAYS = {
    "curl": (["curl"], None, ""),
    "pip": (["python3"], "python3 -m venv ~/env", ""),
    "npm": (["node", "npm"], None, ""),
    # The C compiler is cc with the programs of binutils.
    "cargo": (["cargo", "rustc", "cc", "ar", "as", "ld", "git"],
              "git clone -q https://github.com/OWNER/NAME source", "source"),
}
# The programs of the tests are slower than those of a release, so the search waits until each passage has its vector.
SEARCH = 'vault-search --vault ~/Notes -n 1 --wait 300 "keeping money aside in case we lose a job"'


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with_cargo = sys.argv[1] == "cargo"
    ways, before = (["cargo"], "Until then, build") if with_cargo else (["curl", "pip", "npm"], "Once 0.1 is published")
    block = re.search(rf"{before}.*?```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    lines = [line.partition("  #")[0].strip() for line in block.splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder).resolve()
        if not with_cargo:
            make_release(Path(sys.argv[1]).resolve(), scratch, "")
        with Server(scratch) as server:
            for way in ways:
                walk(way, [line for line in lines if line.startswith(way)], scratch / "homes" / way, server)


def walk(way, lines, home, server):
    programs, first, folder = WAYS[way]
    (home / "programs").mkdir(parents=True)
    for name in [*BASIC, *programs]:
        (home / "programs" / name).symlink_to(real_program(name))
    shutil.copytree(NOTES, home / "Notes")
    folders = [".local/bin", "env/bin", "npm/bin", ".cargo/bin", "programs"]
    environment = {
        "HOME": str(home), "PATH": ":".join(str(home / name) for name in folders),
        "VAULT_AGENT_RELEASES": f"{server.url}/release",
        "PIP_INDEX_URL": f"{server.url}/pypi/", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "npm_config_registry": f"{server.url}/npm/", "npm_config_prefix": str(home / "npm"),
    }
    print(f"== only {way}")
    began = time.monotonic()
    for step, place in [(first, ""), *((line, folder) for line in lines), (SEARCH, "")]:
        if not step:
            continue
        command = step.replace("https://github.com/OWNER/NAME/releases/latest/download", f"{server.url}/manifests")
        command = command.replace("https://github.com/OWNER/NAME", str(ROOT))
        start, cpu = time.monotonic(), cpu_seconds()
        done = subprocess.run(["/bin/sh", "-c", command], env=environment, cwd=home / place, text=True, timeout=7200,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output = done.stdout.replace(str(home), "~").replace(server.url, f"https://github.com/{REPOSITORY}")
        took = f"{time.monotonic() - start:.1f} s, {cpu_seconds() - cpu:.1f} s of CPU"
        print(f"$ {step}\n{output.rstrip()}".rstrip() + f"\n-- {took}", flush=True)
        if done.returncode:
            sys.exit(f"exit code {done.returncode}")
    if "Money/Emergency fund.md" not in done.stdout:
        sys.exit("the search did not find the note")
    print(f"-- {time.monotonic() - began:.1f} s from nothing to the first result", flush=True)


def real_program(name):
    if name == "python3":
        return sys.executable
    if name in ("cargo", "rustc") and shutil.which("rustup"):
        # rustup's own `cargo` would look for a toolchain in the fresh home folder.
        return subprocess.check_output(["rustup", "which", name], text=True).strip()
    return Path(shutil.which(name)).resolve()


def cpu_seconds():
    """Returns the seconds of all programs that have ended; those of the server on this machine do not count."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
