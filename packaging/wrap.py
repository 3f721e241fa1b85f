#!/usr/bin/env python3
"""Wraps the program for other package managers: packaging/wrap.py FOLDER TARGET REPOSITORY OUT

FOLDER is an unpacked archive of a release, with the one file that serves all four commands. TARGET is its Rust target,
REPOSITORY the OWNER/NAME on GitHub. Writes to OUT:

- a wheel for PyPI, vault_agent-VERSION-py3-none-PLATFORM.whl;
- the npm package of the platform, vault-agent-OS-CPU-VERSION.tgz;
- for x86_64-unknown-linux-gnu also the npm package that chooses the platform, vault-agent-VERSION.tgz, because a
  release needs it once;
- a bundle for Claude Desktop, vault-agent-VERSION-OS-CPU.mcpb.

A wheel, a bundle and an npm package hold no links, so the file is in them once, under its own name. The other commands
are small programs that start it with `--started-as NAME`. Needs Python 3.9.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import re
import sys
import tarfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
VERSION = re.search(r'(?m)^version = "(.*)"', (ROOT / "Cargo.toml").read_text())[1]
SUMMARY = "Search a folder of Markdown notes by meaning, rename without breaking links, and undo every change, offline."
LICENSE = "MIT OR Apache-2.0"
COMMANDS = ["vault-agent", "vault-search", "vault-index", "vault-tools"]
# Target: the platform of a wheel, and the names of Node.
PLATFORMS = {
    "x86_64-unknown-linux-gnu": ("manylinux_2_{glibc}_x86_64", "linux", "x64"),
    "aarch64-unknown-linux-gnu": ("manylinux_2_{glibc}_aarch64", "linux", "arm64"),
    "x86_64-apple-darwin": ("macosx_11_0_x86_64", "darwin", "x64"),
    "aarch64-apple-darwin": ("macosx_11_0_arm64", "darwin", "arm64"),
    "x86_64-pc-windows-msvc": ("win_amd64", "win32", "x64"),
}
# Starts the file beside it. Installers link to a script from another folder, so its links are followed first.
SCRIPT = """#!/bin/sh
file=$0
while [ -L "$file" ]; do
  link=$(readlink "$file")
  case $link in /*) file=$link ;; *) file=$(dirname "$file")/$link ;; esac
done
exec "$(dirname "$file")/vault-agent" --started-as {name} "$@"
"""


def main():
    if len(sys.argv) != 5 or sys.argv[2] not in PLATFORMS:
        sys.exit(f"{__doc__}\nTargets: {', '.join(PLATFORMS)}")
    folder, out = Path(sys.argv[1]), Path(sys.argv[4])
    out.mkdir(parents=True, exist_ok=True)
    platform, system, cpu = PLATFORMS[sys.argv[2]]
    url = f"https://github.com/{sys.argv[3]}"
    # By this name the MCP Registry checks that a package belongs to its entry, server.json.
    mcp_name = f"io.github.{sys.argv[3].split('/')[0]}/vault-agent"
    wheel(folder, platform, url, mcp_name, out)
    npm_platform(folder, system, cpu, url, out)
    if sys.argv[2] == "x86_64-unknown-linux-gnu":
        npm_chooser(folder, url, mcp_name, out)
    bundle(folder, system, cpu, url, out)


def executables(folder):
    """Returns the names and contents of the programs, each a file of its own."""
    if (folder / "vault-agent.exe").exists():
        return {f"{name}.exe": (folder / f"{name}.exe").read_bytes() for name in COMMANDS}
    scripts = {name: SCRIPT.format(name=name).encode() for name in COMMANDS[1:]}
    return {"vault-agent": (folder / "vault-agent").read_bytes(), **scripts}


def licenses():
    files = [ROOT / "LICENSE-MIT", ROOT / "LICENSE-APACHE", ROOT / "crates/minilm/PROVENANCE.md"]
    return {file.name: file.read_bytes() for file in files}


def manuals(folder):
    return {f"man/{page.name}": page.read_bytes() for page in sorted((folder / "man").iterdir())}


def shared(folder):
    """Returns the man pages and the completions by their paths in a folder such as /usr/share."""
    files = {name.replace("man/", "man/man1/"): content for name, content in manuals(folder).items()}
    for name in COMMANDS:
        for file, place in [(f"{name}.bash", f"bash-completion/completions/{name}"),
                            (f"{name}.fish", f"fish/vendor_completions.d/{name}.fish"),
                            (f"_{name}", f"zsh/site-functions/_{name}")]:
            files[place] = (folder / "completions" / file).read_bytes()
    return files


def readme(url):
    """Returns the README for a page of PyPI or npm, where relative links would lead nowhere."""
    file = Path("crates/vault-agent/README.md")

    def absolute(match):
        target = os.path.normpath(file.parent / match[1])
        kind = "raw" if target.endswith((".svg", ".png")) else "blob"
        return f"]({url}/{kind}/v{VERSION}/{target})"

    return re.sub(r"\]\((?!https?:|#)([^)]*)\)", absolute, (ROOT / file).read_text())


def wheel(folder, platform, url, mcp_name, out):
    programs = executables(folder)
    if "{glibc}" in platform:
        platform = platform.format(glibc=glibc(programs["vault-agent"]))
    tag, info, files = f"py3-none-{platform}", f"vault_agent-{VERSION}.dist-info", {}
    for name, content in programs.items():
        files[f"vault_agent-{VERSION}.data/scripts/{name}"] = content
    if not platform.startswith("win"):
        for name, content in shared(folder).items():
            files[f"vault_agent-{VERSION}.data/data/share/{name}"] = content
    for name, content in licenses().items():
        files[f"{info}/licenses/{name}"] = content
    metadata = [
        "Metadata-Version: 2.4", "Name: vault-agent", f"Version: {VERSION}", f"Summary: {SUMMARY}",
        f"License-Expression: {LICENSE}", *(f"License-File: {name}" for name in licenses()),
        f"Project-URL: Repository, {url}", "Requires-Python: >=3.8", "Description-Content-Type: text/markdown",
    ]
    files[f"{info}/METADATA"] = "\n".join([*metadata, "", readme(url), f"<!-- mcp-name: {mcp_name} -->", ""]).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: wrap.py\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = [f"{name},sha256={digest(content)},{len(content)}" for name, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    zipped(out / f"vault_agent-{VERSION}-{tag}.whl", files)


def glibc(program):
    """Returns the newest minor version of glibc 2 that the program needs; wheels have no tag below 2.17."""
    return max([17, *(int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", program))])


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def zipped(file, files):
    """Writes a zip archive with the same bytes each time. Programs can be run."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if is_program(name) else 0o100644) << 16
            archive.writestr(entry, content)


def is_program(name):
    return "scripts/" in name or "/bin/" in f"/{name}"


def npm_package(fields):
    common = {"version": VERSION, "license": LICENSE}
    return json.dumps({"name": fields.pop("name"), **common, **fields}, indent=2).encode() + b"\n"


def npm_platform(folder, system, cpu, url, out):
    program = "vault-agent.exe" if system == "win32" else "vault-agent"
    name = f"vault-agent-{system}-{cpu}"
    manifest = npm_package({
        "name": name, "description": f"The program of vault-agent for {system} on {cpu}.", "repository": url,
        "os": [system], "cpu": [cpu], **({"libc": ["glibc"]} if system == "linux" else {}),
    })
    files = {"package.json": manifest, f"bin/{program}": (folder / program).read_bytes(), **licenses()}
    tarred(out / f"{name}-{VERSION}.tgz", files)


def npm_chooser(folder, url, mcp_name, out):
    """Writes the package with the commands, which has one optional package for each platform."""
    pages = manuals(folder)
    platforms = {f"vault-agent-{system}-{cpu}": VERSION for _, system, cpu in PLATFORMS.values()}
    manifest = npm_package({
        "name": "vault-agent", "mcpName": mcp_name, "description": SUMMARY, "repository": url,
        "keywords": ["mcp", "obsidian", "markdown", "notes", "search"], "engines": {"node": ">=18"},
        "bin": {name: f"bin/{name}.js" for name in COMMANDS}, "man": list(pages),
        "optionalDependencies": platforms,
    })
    start = (HERE / "npm" / "start.js").read_bytes()
    files = {"package.json": manifest, "README.md": readme(url).encode(), "start.js": start, **pages}
    for name in COMMANDS:
        files[f"bin/{name}.js"] = f'#!/usr/bin/env node\nrequire("../start.js")("{name}");\n'.encode()
    tarred(out / f"vault-agent-{VERSION}.tgz", {**files, **licenses()})


def tarred(file, files):
    """Writes a tar archive with the same bytes each time."""
    with open(file, "wb") as out, gzip.GzipFile("", "wb", 6, out, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(content), 0o755 if is_program(name) else 0o644
            archive.addfile(entry, io.BytesIO(content))


def bundle(folder, system, cpu, url, out):
    program = "vault-agent.exe" if system == "win32" else "vault-agent"
    manifest = json.loads((HERE / "mcpb.json").read_text())
    manifest["version"], manifest["repository"] = VERSION, {"type": "git", "url": url}
    manifest["server"]["entry_point"] = f"bin/{program}"
    manifest["server"]["mcp_config"]["command"] = "${__dirname}/bin/" + program
    manifest["compatibility"]["platforms"] = [system]
    files = {
        "manifest.json": json.dumps(manifest, indent=2).encode(),
        f"bin/{program}": (folder / program).read_bytes(),
        **licenses(),
    }
    zipped(out / f"vault-agent-{VERSION}-{system}-{cpu}.mcpb", files)


if __name__ == "__main__":
    main()
