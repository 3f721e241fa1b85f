#!/usr/bin/env python3
"""Builds every package from a program, and installs each as a person would: packaging/test.py PROGRAMS [NFPM] [CLAUDE]

PROGRAMS is a folder with the programs of this machine, in any profile; NFPM the program nfpm, and CLAUDE the program of
Claude Code. Packages are installed into fresh folders, from a server on this machine that is the release page and a
mock registry of PyPI and npm. Then a search runs from each. Prints the seconds from the empty folder to the first
result, those of all checks, and the sizes of the files; the last lines say what was left out. Needs Linux on x86-64,
Python 3.11 with jsonschema, pyyaml, tree-sitter and tree-sitter-powershell; and curl, npm, dpkg, rpm and ruby, and in
the same environment of Python uv and pipx, for the ways that use them.
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
import tomllib
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
# Of these, a release has an archive only.
MUSL = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"]
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}
# As the check of the ACP registry sends it: .github/workflows/client.py of agentclientprotocol/registry, 3de1678.
INITIALIZE_ACP = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": 1, "clientInfo": {"name": "ACP Registry Validator", "version": "1.0.0"},
    "clientCapabilities": {"terminal": True, "fs": {"readTextFile": True, "writeTextFile": True},
                           "_meta": {"terminal_output": True, "terminal-auth": True}}}}
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
        release.claude = claude
        manifests(release, scratch / "manifests", claude)
        binstall(release)
        with Server(scratch) as server:
            for way in [pip, uvx, pipx, npm, install_script, formula, deb, rpm, acp_archive, claude_bundle, claude_code,
                        image]:
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
        file = release.page / archive_name(target)
        if not file.exists():
            file.write_text("another system")
    archives = sorted(release.page.glob("vault-v*"))
    checksums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in archives]
    (release.page / "SHA256SUMS").write_text("".join(checksums))
    run([sys.executable, HERE / "release.py", release.page, REPOSITORY, scratch / "manifests"])
    release.manifests = scratch / "manifests"
    return release


def archive_name(target):
    return f"vault-v{VERSION}-{target}" + (".zip" if "windows" in target else ".tar.gz")


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
    # Their syntax is PowerShell's, but not that of the parser below.
    for name in COMMANDS:
        completions = (release.unpacked / "completions" / f"{name}.ps1").read_text()
        assert f"Register-ArgumentCompleter -Native -CommandName '{name}'" in completions
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


def binstall(release):
    """Checks that `cargo binstall` finds the archives of a release, and the programs in them."""
    repository, targets = f"https://github.com/{REPOSITORY}", [*PLATFORMS, *MUSL]
    archives = {archive_name(target) for target in targets}
    with tarfile.open(release.page / archive_name(TARGET)) as archive:
        members = set(archive.getnames())
    for crate, names in [("vault-agent", COMMANDS[:1]), ("vault-search", COMMANDS[1:])]:
        package = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text())
        assert [program["name"] for program in package["bin"]] == names
        settings = package["package"]["metadata"]["binstall"]
        found = set()
        for target in targets:
            fields = {"repo": repository, "version": VERSION, "target": target, "binary-ext": ""}

            def filled(text):
                return re.sub(r"\{ ([a-z-]+) \}", lambda field: fields[field[1]], text)

            own = settings | settings.get("overrides", {}).get(target, {})
            page, _, name = filled(own["pkg-url"]).rpartition("/")
            assert page == f"{repository}/releases/download/v{VERSION}", page
            assert name.endswith({"tgz": ".tar.gz", "zip": ".zip"}[own["pkg-fmt"]]), name
            found.add(name)
            if target == TARGET:
                for fields["bin"] in names:
                    assert filled(own["bin-dir"]) in members, filled(own["bin-dir"])
        # The commands of vault-search are launchers on Windows, which need vault-agent, so cargo builds them there.
        built_by_cargo = {"vault-agent": set(), "vault-search": {archive_name("x86_64-pc-windows-msvc")}}[crate]
        assert archives - found == built_by_cargo, archives - found


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


def works(folder, home, starter=(), **environment):
    """Checks that each command starts, and that a search finds a note by its meaning.

    `starter` has the words before the name of a command, if a program such as uvx starts it.
    """
    # The index is made by the first of them only.
    environment |= {"HOME": str(home), "VAULT_INDEX_FILE": str(home.parent / "index.db")}
    for name in COMMANDS:
        version = run([*starter, folder / name, "--version"], **environment)
        assert version == f"{name} {VERSION}\n", version
    # Embedding models behind Ollama and OpenAI-compatible servers need no other program.
    models = run([*starter, folder / "vault-index", "models"], VAULT_DIR=str(NOTES), **environment)
    assert "the feature http" not in models
    query = ["--vault", NOTES, "--wait", "240", "--files", "-n", "1", "keeping money aside in case we lose a job"]
    found = run([*starter, folder / "vault-search", *query], **environment)
    found_at.setdefault(home.name, time.monotonic())
    assert found.splitlines()[-1] == "Money/Emergency fund.md", found
    run([*starter, folder / "vault-search", "--vault", NOTES, "qwxzv"], expect=1, **environment)


def has_manuals(share, zsh="site-functions"):
    """Checks that a folder such as /usr/share has man pages and completions where programs look for them."""
    for name in COMMANDS:
        for file in [f"man/man1/{name}.1", f"bash-completion/completions/{name}",
                     f"fish/vendor_completions.d/{name}.fish", f"zsh/{zsh}/_{name}"]:
            assert name in (share / file).read_text(), file
    assert (share / "man/man1/vault-index-sync.1").exists()


def pip(_release, home, server):
    run([sys.executable, "-m", "venv", home / "venv"])
    run([home / "venv/bin/pip", "install", "-q", "--index-url", f"{server.url}/pypi/", "vault-agent"])
    works(home / "venv/bin", home)
    has_manuals(home / "venv/share")
    run([home / "venv/bin/pip", "uninstall", "-q", "-y", "vault-agent"])
    assert not [file for file in (home / "venv").rglob("*vault*") if not file.is_dir()]


def beside_python(name):
    """Returns the path of a program that is installed in the environment of this Python, if it is."""
    return shutil.which(name, path=str(Path(sys.executable).parent))


def uvx(release, home, server):
    program = beside_python("uvx")
    if not program:
        left_out.append("uvx: no uv")
        return
    settings = {"UV_DEFAULT_INDEX": f"{server.url}/pypi/", "UV_CACHE_DIR": str(home / "cache"), "HOME": str(home),
                "UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never"}
    works(Path(), home, [program, "--quiet", "--from", "vault-agent"], **settings)
    starts_from_registries(release, "uvx", [program, "--quiet"], home, **settings)


def pipx(_release, home, server):
    program = beside_python("pipx")
    if not program:
        left_out.append("pipx: not installed")
        return
    # Else it would get a newer pip first, which this registry does not have.
    settings = {"PIPX_DISABLE_SHARED_LIBS_AUTO_UPGRADE": "1", "PIP_INDEX_URL": f"{server.url}/pypi/", "HOME": str(home)}
    run([program, "install", "--quiet", "--backend", "pip", "vault-agent"], **settings)
    works(home / ".local/bin", home)
    has_manuals(home / ".local/share")
    run([program, "uninstall", "vault-agent"], **settings)
    assert not any((home / ".local/bin" / name).is_symlink() for name in COMMANDS)


def npm(release, home, server):
    if not shutil.which("npm"):
        left_out.append("npm and npx: no npm")
        return
    settings = {"npm_config_registry": f"{server.url}/npm/", "npm_config_cache": str(home / "cache"), "HOME": str(home)}
    globally = ["--silent", "--no-audit", "--no-fund", "--global", "--prefix", home, "vault-agent"]
    run(["npm", "install", *globally], **settings)
    works(home / "bin", home)
    installed = [file.parent.name for file in (home / "lib/node_modules").rglob("package.json")]
    assert sorted(installed) == ["vault-agent", "vault-agent-linux-x64"], installed
    for page in ["vault-search.1", "vault-index-sync.1"]:
        assert "vault" in (home / "share/man/man1" / page).read_text()
    run(["npm", "uninstall", *globally], **settings)
    assert not any((home / folder).exists() for folder in ["bin/vault-search", "share/man/man1/vault-search.1"])
    (home / "elsewhere").mkdir()
    starts_from_registries(release, "npx", ["npx", "-y"], home / "elsewhere", **settings)


def starts_from_registries(release, runtime, words, home, **environment):
    """Starts the server and the agent as clients start them by their entries in the registries, with uvx or npx."""
    packages = json.loads((release.manifests / "server.json").read_text())["packages"]
    package = next(package for package in packages if package["runtimeHint"] == runtime)
    arguments = []
    for argument in package["packageArguments"]:
        arguments += [argument["value"]] if argument["type"] == "positional" else [argument["name"], NOTES]
    speaks_mcp([*words, f"{package['identifier']}@{package['version']}", *arguments], home, **environment)
    agent = json.loads((release.manifests / "agent.json").read_text())["distribution"][runtime]
    speaks_acp([*words, agent["package"], *agent["args"]], home, **environment)


def first_answer(words, request, home, **environment):
    settings = os.environ | {"HOME": str(home), "VAULT_INDEX_FILE": str(home / "answers.db")} | environment
    server = subprocess.Popen([str(word) for word in words], cwd=home, env=settings, text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    with server:
        # The input stays open until the answer is there, because the agent ends with it.
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
    assert answer and server.returncode == 0, f"{words}: {answer or 'no answer'}, exit code {server.returncode}"
    return json.loads(answer)["result"]


def speaks_mcp(words, home, **environment):
    assert first_answer(words, INITIALIZE, home, **environment)["serverInfo"]["name"] == "vault-agent"


def speaks_acp(words, home, **environment):
    """Checks that the agent announces a way to log in that the ACP registry accepts."""
    methods = first_answer(words, INITIALIZE_ACP, home, **environment)["authMethods"]
    # Without a type, the registry takes it from `_meta`, or takes it for one of the agent.
    kinds = [method.get("type") or ("terminal" if "terminal-auth" in method.get("_meta", {}) else "agent")
             for method in methods]
    assert {"agent", "terminal"} & set(kinds), methods


def install_script(release, home, server):
    if not (shutil.which("curl") or shutil.which("wget")):
        left_out.append("install.sh: neither curl nor wget")
        return
    script = ["sh", release.manifests / "install.sh"]
    settings = {"HOME": str(home), "VAULT_AGENT_RELEASES": f"{server.url}/release"}
    run(script, **settings)
    works(home / ".local/bin", home)
    installed = [file for file in (home / ".local").rglob("*") if not file.is_dir()]
    has_manuals(home / ".local/share")
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
    archive = release.page / archive_name(TARGET)
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
    assert "Depends: libc6 (>= 2.28)" in run(["dpkg-deb", "--info", packages[0]])
    root = home / "root"
    # dpkg refuses to start without the programs of root in PATH, and to install without root.
    dpkg = ["env", f"PATH={os.environ['PATH']}:/usr/sbin:/sbin", "dpkg", f"--root={root}", "--force-depends"]
    can_install = os.geteuid() == 0 and shutil.which("dpkg")
    if can_install:
        for folder in ["info", "updates"]:
            (root / "var/lib/dpkg" / folder).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        run([*dpkg, "--install", packages[0]])
        assert run([*dpkg, "--verify", "vault-agent"]) == ""
    else:
        left_out.append(".deb: not root, so it was unpacked and not installed")
        run(["dpkg-deb", "--extract", packages[0], root])
    works(root / "usr/bin", home)
    has_manuals(root / "usr/share", zsh="vendor-completions")
    if can_install:
        run([*dpkg, "--remove", "vault-agent"])
        left = [file for file in (root / "usr").rglob("*") if not file.is_dir()]
        assert left == [], left


def rpm(release, home, _server):
    packages = list(release.page.glob("*.rpm"))
    if not packages or not shutil.which("rpm"):
        left_out.append(".rpm: no nfpm or no rpm")
        return
    run(["rpm", "--root", home / "root", "--install", "--nodeps", "--noscripts", packages[0]])
    assert "glibc >= 2.28" in run(["rpm", "--query", "--requires", "--package", packages[0]])
    works(home / "root/usr/bin", home)
    has_manuals(home / "root/usr/share")
    run(["rpm", "--root", home / "root", "--verify", "--nodeps", "vault-agent"])
    run(["rpm", "--root", home / "root", "--erase", "vault-agent"])
    assert not (home / "root/usr/bin/vault-search").is_symlink()


def acp_archive(release, home, _server):
    """Starts the agent as editors start it that install the archive by the ACP registry."""
    agent = json.loads((release.manifests / "agent.json").read_text())["distribution"]["binary"]["linux-x86_64"]
    run(["tar", "-xzf", release.page / agent["archive"].rpartition("/")[2], "-C", home])
    speaks_acp([home / agent["cmd"], *agent["args"]], home)


def claude_code(release, home, _server):
    """Asks Claude Code for the server that `mcp install` has configured, which it starts."""
    if not release.claude:
        left_out.append("the server in Claude Code: its program is not here")
        return
    # Else both would use the configuration of the person who runs this.
    os.environ.pop("CLAUDE_CONFIG_DIR", None)
    program = release.unpacked / "vault-agent"
    run([program, "mcp", "install", "claude-code", "--vault", NOTES], HOME=str(home))
    shown = run([release.claude, "mcp", "get", "vault"], HOME=str(home))
    for line in ["Status: ✔ Connected", f"Command: {program}", f"Args: mcp --vault {NOTES}"]:
        assert line in shown, shown


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
    speaks_mcp(words, home)


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
