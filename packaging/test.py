#!/usr/bin/env python3
"""Makes every package from a program, and installs each as a person would: packaging/test.py PROGRAMS [NFPM] [CLAUDE]

PROGRAMS is a folder with the programs of this machine, in any profile; NFPM the program nfpm, and CLAUDE the program of
Claude Code. Packages are installed into fresh folders, from a server on this machine that plays the release page, PyPI
and the npm registry. Then a search runs from each. Needs Linux on x86-64, Python 3.9 with jsonschema, pyyaml,
tree-sitter and tree-sitter-powershell; and curl, npm, rpm and ruby for the ways that use them. The last lines say what
was left out.
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
                print(f"{time.monotonic() - start:8.1f} s   {way.__name__}")
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
    run([sys.executable, HERE / "wrap.py", release.unpacked, TARGET, REPOSITORY, release.page])
    if nfpm:
        for packager in ["deb", "rpm"]:
            run([nfpm, "package", "--config", HERE / "nfpm.yaml", "--packager", packager, "--target", release.page],
                cwd=release.unpacked, VERSION=VERSION, ARCH="amd64")
    release.sizes = {file.name: file.stat().st_size for file in release.page.iterdir()}
    # The archives of the other systems are built elsewhere; the manifests need only their sums.
    for target in PLATFORMS:
        suffix = ".zip" if "windows" in target else ".tar.gz"
        file = release.page / f"vault-v{VERSION}-{target}{suffix}"
        if not file.exists():
            file.write_text("another system")
    archives = sorted(release.page.glob("vault-v*"))
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in archives]
    (release.page / "SHA256SUMS").write_text("".join(sums))
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
    # As the registry of the Agent Client Protocol demands.
    icon = (HERE / "icon.svg").read_text()
    assert 'viewBox="0 0 16 16"' in icon and "currentColor" in icon, "the icon must be 16x16, in currentColor"
    assert set(re.findall(r'(?:fill|stroke)="([^"]*)"', icon)) <= {"none", "currentColor"}, "the icon has colours"
    plugin = json.loads((HERE / "claude-plugin/.claude-plugin/plugin.json").read_text())
    assert plugin["version"] == VERSION, f"claude-plugin/.claude-plugin/plugin.json has the version {plugin['version']}"
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
    """Plays the release page (/release), PyPI (/pypi) and the npm registry (/npm)."""

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
    query = ["--vault", NOTES, "--wait", "60", "--files", "-n", "1", "keeping money aside in case we lose a job"]
    found = run([folder / "vault-search", *query], **environment)
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
    # Again, over the first one; then without.
    run([*script, "--version", f"v{VERSION}"], **settings)
    run([*script, "--uninstall"], **settings)
    left = [file for file in (home / ".local").rglob("*") if not file.is_dir()]
    assert left == [], left
    # Nothing is installed from a file with another sum, or of a version that does not exist.
    archive = release.page / f"vault-v{VERSION}-{TARGET}.tar.gz"
    original = archive.read_bytes()
    archive.write_bytes(original[:-1])
    assert "does not have the sum" in run(script, expect=1, **settings)
    archive.write_bytes(original)
    assert "cannot be downloaded" in run([*script, "--version", "9.9.9"], expect=1, **settings)
    assert not (home / ".local/bin/vault-agent").exists()


def formula(release, home, _server):
    if not shutil.which("ruby"):
        left_out.append("the Homebrew formula: no ruby")
        return
    archive = release.page / f"vault-v{VERSION}-{TARGET}.tar.gz"
    run(["ruby", HERE / "formula.rb", release.manifests / "vault-agent.rb", archive, release.unpacked, home / "prefix"])
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
    assert "Depends: libc6" in run(["dpkg-deb", "--info", packages[0]])
    works(home / "root/usr/bin", home)
    assert (home / "root/usr/share/man/man1/vault-index-sync.1").exists()


def rpm(release, home, _server):
    packages = list(release.page.glob("*.rpm"))
    if not packages or not shutil.which("rpm"):
        left_out.append(".rpm: no nfpm or no rpm")
        return
    run(["rpm", "--root", home / "root", "--install", "--nodeps", "--noscripts", packages[0]])
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
    """Starts the server with the words and the environment of the Dockerfile. There is no image to build it from."""
    text = (HERE / "Dockerfile").read_text()
    words = json.loads(re.search(r"(?m)^ENTRYPOINT (.*)", text)[1]) + json.loads(re.search(r"(?m)^CMD (.*)", text)[1])
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
