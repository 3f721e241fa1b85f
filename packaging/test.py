#!/usr/bin/env python3
"""Builds every package from a program, and installs each as a person would: packaging/test.py PROGRAMS [NFPM] [CLAUDE]

PROGRAMS is a folder with the programs of this machine, in any profile; NFPM the program nfpm, and CLAUDE the program of
Claude Code. Packages are installed into fresh folders, from a server on this machine that is the release page and a
mock registry of PyPI and npm. Then a search runs from each. Prints the seconds from the empty folder to the first
result, those of all checks, and the sizes of the files; the last lines say what was left out. Needs Linux on x86-64,
Python 3.9 with jsonschema, pyyaml, tree-sitter and tree-sitter-powershell; and curl, npm, rpm and ruby for the ways
that use them.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

sys.dont_write_bytecode = True
from wrap import COMMANDS, HERE, PLATFORMS, ROOT, VERSION

TARGET, REPOSITORY = "x86_64-unknown-linux-gnu", "example/notes"
NOTES = ROOT / "testdata" / "vaults" / "demo"
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}
left_out = []
# For each way, when its first search had found the note.
found_at = {}


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    programs, nfpm, claude = Path(sys.argv[1]).resolve(), *[*sys.argv[2:], "", ""][:2]
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder).resolve()
        release = make_release(programs, scratch, nfpm)
        manifests(release, scratch / "manifests", claude)
        with Server(scratch) as server:
            for way in [pip, npm, install_script, formula, deb, rpm, claude_bundle, image]:
                home, start = scratch / "homes" / way.__name__, time.monotonic()
                home.mkdir(parents=True)
                way(release, home, server)
                first = f"{found_at[way.__name__] - start:6.1f} s" if way.__name__ in found_at else "       -"
                print(f"{first} of {time.monotonic() - start:6.1f} s   {way.__name__}")
    for file in sorted(release.sizes):
        print(f"{release.sizes[file] / 1e6:8.1f} MB  {file}")
    for reason in left_out:
        print(f"left out: {reason}")


class Release:
    """The files of a release: `page` for its page, `unpacked` an archive that is unpacked."""


def make_release(programs, scratch, nfpm):
    release = Release()
    release.page = scratch / "release" / f"v{VERSION}"
    release.page.mkdir(parents=True)
    stripped = scratch / "stripped"
    stripped.mkdir()
    shutil.copy(programs / "vault-agent", stripped)
    run(["strip", stripped / "vault-agent"])
    run([ROOT / ".ci" / "archive", f"v{VERSION}", TARGET, stripped], CARGO_TARGET_DIR=str(scratch / "target"))
    archive = next((scratch / "target" / "archive").iterdir())
    shutil.copy(archive, release.page)
    (scratch / "unpacked").mkdir()
    run(["tar", "-xzf", archive, "-C", scratch / "unpacked"])
    release.unpacked = next((scratch / "unpacked").iterdir())
    for out in [release.page, scratch / "again"]:
        run([sys.executable, HERE / "wrap.py", release.unpacked, TARGET, REPOSITORY, out])
    for file in (scratch / "again").iterdir():
        assert file.read_bytes() == (release.page / file.name).read_bytes(), f"{file.name} has other bytes each time"
    if nfpm:
        for packager in ["deb", "rpm"]:
            run([nfpm, "package", "--config", HERE / "nfpm.yaml", "--packager", packager, "--target", release.page],
                cwd=release.unpacked, VERSION=VERSION, ARCH="amd64")
    release.sizes = {file.name: file.stat().st_size for file in release.page.iterdir()}
    # The archives of the other systems are built elsewhere; the manifests need only their checksums.
    for target in PLATFORMS:
        suffix = ".zip" if "windows" in target else ".tar.gz"
        file = release.page / f"vault-v{VERSION}-{target}{suffix}"
        if not file.exists():
            file.write_text("another system")
    archives = sorted(release.page.glob("vault-v*"))
    checksums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in archives]
    (release.page / "SHA256SUMS").write_text("".join(checksums))
    run([sys.executable, HERE / "release.py", release.page, REPOSITORY, scratch / "manifests"])
    release.manifests = scratch / "manifests"
    return release


def manifests(release, folder, claude):
    """Checks the manifests against the schemas of those who read them."""
    import jsonschema
    import tree_sitter
    import tree_sitter_powershell
    import yaml

    def check(schema, value):
        jsonschema.validate(value, json.loads((HERE / "schemas" / f"{schema}.schema.json").read_text()))

    check("mcp-server", json.loads((folder / "server.json").read_text()))
    check("acp-agent", json.loads((folder / "agent.json").read_text()))
    check("scoop", json.loads((folder / "scoop.json").read_text()))
    for name, schema in [("version", "version"), ("installer", "installer"), ("locale.en-US", "defaultLocale")]:
        check(f"winget-{schema}", yaml.safe_load((folder / f"winget.{name}.yaml").read_text()))
    with zipfile.ZipFile(next(release.page.glob("*.mcpb"))) as bundle:
        check("mcpb", json.loads(bundle.read("manifest.json")))
    # A page of PyPI or npm has no other files.
    with zipfile.ZipFile(next(release.page.glob("*.whl"))) as wheel:
        page = wheel.read(f"vault_agent-{VERSION}.dist-info/METADATA").decode()
    with tarfile.open(release.page / f"vault-agent-{VERSION}.tgz") as package:
        pages = [page, package.extractfile("package/README.md").read().decode()]
    for page in pages:
        links = re.findall(r"\]\(([^)]*)\)", page)
        relative = [link for link in links if not link.startswith(("https://", "#"))]
        assert links and not relative, f"relative links: {relative}"
        for kind, path in re.findall(rf"github\.com/{REPOSITORY}/(blob|raw)/v{re.escape(VERSION)}/([^)#]*)", page):
            assert (ROOT / path).is_file() and (kind == "raw") == (Path(path).suffix == ".svg"), f"{kind} {path}"
    # As the registry of the Agent Client Protocol demands.
    icon = (HERE / "icon.svg").read_text()
    assert 'viewBox="0 0 16 16"' in icon and "currentColor" in icon, "the icon must be 16x16, in currentColor"
    assert set(re.findall(r'(?:fill|stroke)="([^"]*)"', icon)) <= {"none", "currentColor"}, "the icon has colours"
    plugin = json.loads((HERE / "claude-plugin/.claude-plugin/plugin.json").read_text())
    assert plugin["version"] == VERSION, f"claude-plugin/.claude-plugin/plugin.json has the version {plugin['version']}"
    # The plugin for Obsidian shows the lines of README.
    view = (ROOT / "obsidian/src/views/agent-view.ts").read_text()
    for line in re.findall(r"`(.*/latest/download/install.*)`", (HERE / "README.md").read_text()):
        line = line.replace("https://github.com/OWNER/NAME", "REPOSITORY").replace("\\|", "|")
        assert f'"{line}"' in view, f"agent-view.ts does not have the line {line}"
    for file in folder.iterdir():
        assert not re.search(r"@[A-Z0-9]+(:[a-z0-9_-]+)?@", file.read_text()), f"{file.name} has a placeholder"
    for shell in ["sh", "bash", "dash"]:
        if shutil.which(shell):
            run([shell, "-n", folder / "install.sh"])
    powershell = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
    assert not powershell.parse((folder / "install.ps1").read_bytes()).root_node.has_error, "the syntax of install.ps1"
    if claude:
        for place in [ROOT, HERE / "claude-plugin"]:
            run([claude, "plugin", "validate", "--strict", place], HOME=str(folder))
    else:
        left_out.append("the plugin for Claude Code: its program is not here")


class Server:
    """A release page (/release), and mock registries of PyPI (/pypi) and npm (/npm)."""

    def __init__(self, scratch):
        release = scratch / "release" / f"v{VERSION}"
        server = self

        class Handler(SimpleHTTPRequestHandler):
            def do_GET(self):
                path = self.path.removeprefix("/pypi/vault-agent/").removeprefix("/npm/-/")
                if self.path == "/pypi/vault-agent/":
                    wheels = [file.name for file in release.glob("*.whl")]
                    self.answer("text/html", "".join(f'<a href="{name}">{name}</a>\n' for name in wheels))
                elif path != self.path:
                    self.path = f"/release/v{VERSION}/{path}"
                    super().do_GET()
                elif self.path.startswith("/npm/vault-agent"):
                    self.answer("application/json", json.dumps(packument(self.path[5:], release, server.url)))
                else:
                    super().do_GET()

            def answer(self, kind, text):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=scratch))
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()


def packument(name, release, url):
    """Returns what the registry says of a package. Those of other systems have no file: npm must not ask for one."""
    file = release / f"{name}-{VERSION}.tgz"
    if file.exists():
        with tarfile.open(file) as packed:
            manifest = json.load(packed.extractfile("package/package.json"))
    else:
        _, system, cpu = name.removeprefix("vault-agent").rsplit("-", 2)
        manifest = {"name": name, "version": VERSION, "os": [system], "cpu": [cpu]}
    manifest["dist"] = {"tarball": f"{url}/npm/-/{file.name}"}
    return {"name": name, "dist-tags": {"latest": VERSION}, "versions": {VERSION: manifest}}


def run(words, expect=0, cwd=None, **environment):
    """Runs a program and returns what it prints."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=os.environ | environment, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != expect:
        sys.exit(f"$ {' '.join(map(str, words))}\n{done.stdout}exit code {done.returncode} instead of {expect}")
    return done.stdout


def works(folder, home):
    """Checks that each command starts, and that a search finds a note by its meaning."""
    # The index is made by the first of them only.
    environment = {"HOME": str(home), "VAULT_INDEX_FILE": str(home.parent / "index.db")}
    for name in COMMANDS:
        version = run([folder / name, "--version"], **environment)
        assert version == f"{name} {VERSION}\n", version
    # Embedding models behind Ollama and OpenAI-compatible servers need no other program.
    assert "the feature http" not in run([folder / "vault-index", "models"], VAULT_DIR=str(NOTES), **environment)
    query = ["--vault", NOTES, "--wait", "60", "--files", "-n", "1", "keeping money aside in case we lose a job"]
    found = run([folder / "vault-search", *query], **environment)
    found_at.setdefault(home.name, time.monotonic())
    assert found.splitlines()[-1] == "Money/Emergency fund.md", found
    run([folder / "vault-search", "--vault", NOTES, "qwxzv"], expect=1, **environment)


def pip(_release, home, server):
    run([sys.executable, "-m", "venv", home / "venv"])
    run([home / "venv/bin/pip", "install", "-q", "--index-url", f"{server.url}/pypi/", "vault-agent"])
    works(home / "venv/bin", home)
    # uv and pipx install into a folder of their own, and link to the programs.
    (home / "linked").mkdir()
    for name in COMMANDS:
        (home / "linked" / name).symlink_to(home / "venv/bin" / name)
    works(home / "linked", home)
    run([home / "venv/bin/pip", "uninstall", "-q", "-y", "vault-agent"])
    assert not any((home / "venv/bin" / name).exists() for name in COMMANDS)


def npm(_release, home, server):
    if not shutil.which("npm"):
        left_out.append("npm and npx: no npm")
        return
    settings = {"npm_config_registry": f"{server.url}/npm/", "npm_config_cache": str(home / "cache"), "HOME": str(home)}
    run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", home, "vault-agent"], **settings)
    works(home / "node_modules/.bin", home)
    installed = [file.name for file in (home / "node_modules").iterdir() if file.name.startswith("vault-agent")]
    assert sorted(installed) == ["vault-agent", "vault-agent-linux-x64"], installed
    (home / "elsewhere").mkdir()
    assert speaks_mcp(["npx", "-y", "vault-agent", "mcp", "--vault", NOTES], home / "elsewhere", **settings)


def speaks_mcp(words, home, **environment):
    settings = os.environ | {"HOME": str(home), "VAULT_INDEX_FILE": str(home / "mcp.db")} | environment
    done = subprocess.run([str(word) for word in words], input=json.dumps(INITIALIZE) + "\n", cwd=home, env=settings,
                          text=True, timeout=120, stdout=subprocess.PIPE)
    answer = json.loads(done.stdout.splitlines()[0])
    return answer["result"]["serverInfo"]["name"] == "vault-agent" and done.returncode == 0


def install_script(release, home, server):
    if not (shutil.which("curl") or shutil.which("wget")):
        left_out.append("install.sh: neither curl nor wget")
        return
    script = ["sh", release.manifests / "install.sh"]
    settings = {"HOME": str(home), "VAULT_AGENT_RELEASES": f"{server.url}/release"}
    run(script, **settings)
    works(home / ".local/bin", home)
    installed = [file for file in (home / ".local").rglob("*") if not file.is_dir()]
    assert home / ".local/share/man/man1/vault-search.1" in installed
    assert home / ".local/share/bash-completion/completions/vault-tools" in installed
    sizes = {file.stat().st_ino: file.stat().st_size for file in installed}
    assert sum(sizes.values()) < 1.1 * (release.unpacked / "vault-agent").stat().st_size, "the program is there twice"
    # Again, over the first one.
    assert "fpath" in run([*script, "--version", f"v{VERSION}"], SHELL="/bin/zsh", **settings)

    # These fail, and change nothing, not even by writing the same again.
    def state():
        return {file: file.stat().st_mtime_ns for file in (home / ".local").rglob("*") if not file.is_dir()}

    def unchanged():
        assert state() == before
        for name in COMMANDS:
            assert run([home / ".local/bin" / name, "--version"]) == f"{name} {VERSION}\n"

    before = state()

    def broken(version, program, checksum=None):
        """Adds a version to the release page, with an archive of which only the program is there."""
        page, name = release.page.parent / f"v{version}", f"vault-v{version}-{TARGET}"
        (home / name).mkdir()
        (home / name / "vault-agent").write_text(program)
        (home / name / "vault-agent").chmod(0o755)
        page.mkdir()
        run(["tar", "-czf", page / f"{name}.tar.gz", "-C", home, name])
        checksum = checksum or hashlib.sha256((page / f"{name}.tar.gz").read_bytes()).hexdigest()
        (page / "SHA256SUMS").write_text(f"{checksum}  {name}.tar.gz\n")

    broken("9.9.7", "#!/bin/sh\n", checksum="0" * 64)
    # As on a system with another C library, the loader of this one is missing.
    broken("9.9.8", "#!/missing/loader\n")
    for version, message in [("9.9.7", "does not have the checksum"), ("9.9.8", "does not run on this system"),
                             ("9.9.9", "cannot be downloaded")]:
        assert message in run([*script, "--version", version], expect=1, **settings)
        unchanged()
    text = script[1].read_text()
    # On a system with musl, such as Alpine, it asks for the archive that is linked statically.
    (home / "alpine").mkdir()
    (home / "alpine/ldd").write_text("#!/bin/sh\necho 'musl libc (x86_64)' >&2\nexit 1\n")
    (home / "alpine/ldd").chmod(0o755)
    alpine = settings | {"PATH": f"{home / 'alpine'}:{os.environ['PATH']}"}
    assert "x86_64-unknown-linux-musl.tar.gz" in run(script, expect=1, **alpine)
    unchanged()
    plain_http = text.replace(f"https://github.com/{REPOSITORY}/releases/download", f"{server.url}/release")
    if shutil.which("curl"):
        # From the address that is written in it, it downloads by HTTPS alone.
        assert "cannot be downloaded" in run(["sh", "-c", plain_http], expect=1, HOME=str(home))
    lines = text.splitlines(keepends=True)
    for length in range(len(lines)):
        # A download that is cut off is a whole script of functions, or none.
        subprocess.run(["sh"], input="".join(lines[:length]), text=True, env=os.environ | settings, capture_output=True)
    unchanged()
    for shell in ["sh", "dash", "bash"]:
        if shutil.which(shell):
            assert "install.sh [--version" in run([shell, "-c", f'{shell} -s -- --help <"$0"', script[1]])
    run([*script, "--uninstall"], **settings)
    left = [file for file in (home / ".local").rglob("*") if not file.is_dir()]
    assert left == [], left


def formula(release, home, _server):
    if not shutil.which("ruby"):
        left_out.append("the Homebrew formula: no ruby")
        return
    archive = release.page / f"vault-v{VERSION}-{TARGET}.tar.gz"
    stub = ["ruby", HERE / "homebrew_stub.rb", release.manifests / "vault-agent.rb"]
    run([*stub, archive, release.unpacked, home / "prefix"])
    works(home / "prefix/bin", home)
    completions = ["etc/bash_completion.d/vault-search", "share/zsh/site-functions/_vault-agent"]
    for file in ["share/man/man1/vault-search.1", *completions]:
        assert (home / "prefix" / file).exists(), file


def deb(release, home, _server):
    packages = list(release.page.glob("*.deb"))
    if not packages or not shutil.which("dpkg-deb"):
        left_out.append(".deb: no nfpm or no dpkg-deb")
        return
    run(["dpkg-deb", "--extract", packages[0], home / "root"])
    assert "Depends: libc6 (>= 2.28)" in run(["dpkg-deb", "--info", packages[0]])
    works(home / "root/usr/bin", home)
    assert (home / "root/usr/share/man/man1/vault-index-sync.1").exists()


def rpm(release, home, _server):
    packages = list(release.page.glob("*.rpm"))
    if not packages or not shutil.which("rpm"):
        left_out.append(".rpm: no nfpm or no rpm")
        return
    run(["rpm", "--root", home / "root", "--install", "--nodeps", "--noscripts", packages[0]])
    assert "glibc >= 2.28" in run(["rpm", "--query", "--requires", "--package", packages[0]])
    works(home / "root/usr/bin", home)
    run(["rpm", "--root", home / "root", "--verify", "--nodeps", "vault-agent"])
    run(["rpm", "--root", home / "root", "--erase", "vault-agent"])
    assert not (home / "root/usr/bin/vault-search").is_symlink()


def claude_bundle(release, home, _server):
    """Starts the server of the bundle as Claude Desktop would."""
    with zipfile.ZipFile(next(release.page.glob("*.mcpb"))) as bundle:
        for entry in bundle.infolist():
            file = Path(bundle.extract(entry, home))
            file.chmod(entry.external_attr >> 16)
    config = json.loads((home / "manifest.json").read_text())["server"]["mcp_config"]
    values = {"${__dirname}": str(home), "${user_config.vault}": str(NOTES)}
    words = [config["command"], *config["args"]]
    for name, value in values.items():
        words = [word.replace(name, value) for word in words]
    assert speaks_mcp(words, home)


def image(release, home, _server):
    """Starts the server with the words and the environment of the Dockerfile, which is not built."""
    text = (HERE / "Dockerfile").read_text()
    words = json.loads(re.search(r"(?m)^ENTRYPOINT (.*)", text)[1])
    environment = dict(pair.split("=") for pair in re.search(r"(?m)^ENV (.*)", text)[1].split())
    (home / "key").write_text("secret\n")
    (home / "key").chmod(0o600)
    places = {"/run/key": str(home / "key"), "0.0.0.0:8571": "0.0.0.0:0"}
    words = [release.unpacked / words[0], *(places.get(word, word) for word in words[1:])]
    for name, value in environment.items():
        environment[name] = value.replace("/notes", str(NOTES)).replace("/data", str(home))
    server = subprocess.Popen(words, env=os.environ | environment, text=True, stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE)
    try:
        port = next(found[1] for line in server.stderr if (found := re.search(r"http://\S+:(\d+)/mcp", line)))
        for key, status in [("secret", 200), ("another", 401)]:
            request = Request(f"http://localhost:{port}/mcp", json.dumps(INITIALIZE).encode(), {
                "authorization": f"Bearer {key}", "content-type": "application/json",
                "accept": "application/json, text/event-stream"})
            try:
                answered = urlopen(request).status
            except HTTPError as error:
                answered = error.code
            assert answered == status, f"with the key {key}: {answered}"
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
