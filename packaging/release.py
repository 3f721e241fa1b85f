#!/usr/bin/env python3
"""Fills the templates with a release: packaging/release.py ARCHIVES REPOSITORY OUT

ARCHIVES is a folder with the SHA256SUMS of the archives, REPOSITORY the OWNER/NAME on GitHub. Writes each file of
packaging/templates to OUT. In the templates:

- `@VERSION@`, `@OWNER@` and `@REPOSITORY@` are the version, the owner and the address of the repository;
- `@URL:TARGET@` and `@SHA256:TARGET@` are the address and the checksum of the archive for a Rust target.

Needs Python 3.9.
"""

import re
import sys
from pathlib import Path

from wrap import HERE, VERSION


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    checksums = dict(reversed(line.split()) for line in (Path(sys.argv[1]) / "SHA256SUMS").read_text().splitlines())
    repository, out = f"https://github.com/{sys.argv[2]}", Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)

    def value(match):
        kind, _, target = match[1].partition(":")
        archive = f"vault-v{VERSION}-{target}" + (".zip" if "windows" in target else ".tar.gz")
        if kind == "SHA256" and archive not in checksums:
            sys.exit(f"{sys.argv[1]}/SHA256SUMS has no line for {archive}")
        return {
            "VERSION": VERSION,
            "OWNER": sys.argv[2].split("/")[0],
            "REPOSITORY": repository,
            "URL": f"{repository}/releases/download/v{VERSION}/{archive}",
            "SHA256": checksums.get(archive),
        }[kind]

    for template in sorted((HERE / "templates").iterdir()):
        text = re.sub(r"@(VERSION|OWNER|REPOSITORY|(?:URL|SHA256):[a-z0-9_-]+)@", value, template.read_text())
        (out / template.name).write_text(text)


if __name__ == "__main__":
    main()
