#!/usr/bin/env python3
"""Times the Model Context Protocol server, alone and beside its peers, on a generated vault of 5,000 notes.

    cargo build --release -p vault-agent -p benches
    benches/peers/mcp.py target/release                       # ours, and the peers that are named
    benches/peers/mcp.py target/release --load                # only 50 clients over HTTP for three minutes

BIN is the folder of the release binaries vault-agent and make_vault. Peers are named by their programs:
--turbovault PROGRAM, --mcpvault PROGRAM, --qmd PROGRAM; the last two are run by the `node` on the path. Each has a copy
of the vault, since some write into it, and who watches a vault hears of all that others read in it. Vaults and indexes
are kept in --work; nobody's own settings are read, and our index with vectors takes minutes the first time. Python's
standard library is enough; with tiktoken and its file of o200k_base (TIKTOKEN_CACHE_DIR) tokens are counted, else they
are a quarter of the bytes.

Servers take turns, so that ratios within one run say more than the times; CPU is that of a call, in all threads. Start:
from the start of the process to the answer to tools/list, in the newest revision as the first message and in an older
one after `initialize`. Searches: one to three words as they stand in a note, ten results, ten searches a turn, in the
older revision, which all of them speak. Some are asked with --pause seconds before each, as an assistant does, so that
whatever looks after the vault now and then is due.
"""

import argparse
import http.client
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

NEW, OLD = "2026-07-28", "2025-11-25"
CLIENT = {"name": "bench", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}
HELLO = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": CLIENT}
# Calls that a server is asked before it is the next one's turn.
TURN = 10
# A start or an answer that takes longer is given up.
LONGEST = 120


class Fault(Exception):
    """An answer that is an error, or none."""


def params_of(era, params):
    """What a request carries in a revision."""
    return {**params, "_meta": META} if era == NEW else params


def checked(message):
    """The result of a response; a tool's error counts as one."""
    if "result" not in message:
        raise Fault(json.dumps(message.get("error", message)))
    result = message["result"]
    if result.get("isError"):
        raise Fault(json.dumps(result.get("content", ""))[:300])
    return result


class Stdio:
    """A client over standard input and output."""

    def __init__(self, command, env, era):
        self.era, self.last = era, 0
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.timer = threading.Timer(LONGEST, self.process.kill)
        self.timer.daemon = True
        self.timer.start()

    def begin(self):
        """Introduces itself where the revision wants that."""
        if self.era == OLD:
            self.ask("initialize", HELLO)
            self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message):
        self.process.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.last += 1
        self.write({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params_of(self.era, params)})
        while line := self.process.stdout.readline():
            # Some programs write other things to standard output.
            message = json.loads(line) if line.startswith(b"{") else {}
            if message.get("id") == self.last and "method" not in message:
                return checked(message)
        raise Fault("it ended")

    def call(self, tool, args):
        return self.ask("tools/call", {"name": tool, "arguments": args})

    def settled(self):
        """From now on no answer is given up: the caller knows that it answers."""
        self.timer.cancel()

    def end(self):
        self.timer.cancel()
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Http:
    """A client over HTTP, with a connection of its own."""

    def __init__(self, port, era):
        self.era, self.last, self.session = era, 0, None
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)

    def begin(self):
        if self.era == OLD:
            self.session = None
            self.ask("initialize", HELLO)
            self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.era == NEW or self.session:
            headers["MCP-Protocol-Version"] = self.era
        if self.era == NEW:
            headers["Mcp-Method"] = message["method"]
            name = message["params"].get("name", message["params"].get("uri"))
            if name:
                headers["Mcp-Name"] = name
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        self.connection.request("POST", "/mcp", json.dumps(message, separators=(",", ":")), headers)
        response = self.connection.getresponse()
        self.session = response.headers.get("Mcp-Session-Id", self.session)
        body = response.read()
        if response.status not in (200, 202):
            raise Fault(f"{response.status} {body[:200]!r}")
        return body

    def ask(self, method, params):
        self.last += 1
        body = self.post(
            {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params_of(self.era, params)}
        )
        # One JSON, or events of which the last is the response.
        texts = [body] if body.startswith(b"{") else re.findall(rb"^data: ?(\{.*)$", body, re.M)
        for message in map(json.loads, texts):
            if message.get("id") == self.last and "method" not in message:
                return checked(message)
        raise Fault(f"no response in {body[:200]!r}")

    def call(self, tool, args):
        return self.ask("tools/call", {"name": tool, "arguments": args})

    def end(self):
        if self.session:
            headers = {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": self.era}
            self.connection.request("DELETE", "/mcp", headers=headers)
            self.connection.getresponse().read()
        self.connection.close()


class Server:
    """A server and how it is asked."""

    def __init__(self, name, command, env, search, read, eras=(NEW, OLD)):
        self.name, self.command, self.env, self.eras = name, command, env, eras
        self.search, self.read = search, read

    def start(self, era):
        return Stdio(self.command, self.env, era)


def timed(act):
    start = time.perf_counter()
    result = act()
    return 1000 * (time.perf_counter() - start), result


def percentile(values, share):
    """The value that a share of the values is not above."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)]


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout.strip()


def version(program, env):
    try:
        return run(program, "--version", env=env).splitlines()[0]
    except (subprocess.CalledProcessError, OSError, IndexError):
        return "version unknown"


def vault_of(args, env):
    """The vault and our index of it, with vectors; made once."""
    vault, index = args.work / f"notes-{args.notes}", args.work / f"index-{args.notes}" / "index.db"
    if not vault.exists():
        part = vault.with_suffix(".part")
        run(args.bin / "make_vault", part, str(args.notes), "1500", "6", "2")
        part.rename(vault)
    # The server itself brings the index up to date, vectors included, and says while it has not.
    client = Stdio([args.bin / "vault-agent", "mcp", "--vault", vault, "--index", index], env, NEW)
    client.settled()
    while notices := client.call("search_notes", {"query": "garden"})["structuredContent"].get("notices"):
        print(f"making the index: {notices[0]}", file=sys.stderr)
        time.sleep(20)
    # Files that were too young at the first look are read once more.
    time.sleep(5)
    client.end()
    return vault, index


def queries_of(vault, count):
    """One to three words that stand beside each other in a note, and the paths of notes."""
    paths = sorted(vault.rglob("*.md"))
    chance = random.Random(1)
    queries = []
    while len(queries) < count:
        words = re.findall(r"\b[a-z]{4,}\b", chance.choice(paths).read_text())
        if len(words) > 20:
            at = chance.randrange(len(words) - 3)
            queries.append(" ".join(words[at : at + 1 + len(queries) % 3]))
    return queries, [str(path.relative_to(vault)) for path in chance.sample(paths, 200)]


def servers_of(args, vault, index, env):
    """Ours, and the peers that were named; those that index do so here, once."""
    our_command = [args.bin / "vault-agent", "mcp", "--vault", vault, "--index", index]
    search = lambda query: ("search_notes", {"query": query, "top_k": 10})
    servers = [Server("vault-agent", our_command, env, search, lambda path: ("read_note", {"path": path}))]
    versions = [version(args.bin / "vault-agent", env)]

    def copy(name):
        folder = args.work / f"{name}-{args.notes}"
        if not folder.exists():
            run("cp", "-r", vault, folder)
        return folder

    if args.turbovault:
        servers.append(
            Server(
                "turbovault",
                [args.turbovault, "--vault", copy("turbovault"), "--profile", "production"],
                env,
                lambda query: ("search", {"query": query, "limit": 10}),
                lambda path: ("read_note", {"path": path}),
                # It wants `initialize` first.
                eras=(OLD,),
            )
        )
        versions.append(version(args.turbovault, env))
    if args.mcpvault or args.qmd:
        versions.append(f"node {version('node', env)}")
    if args.mcpvault:
        servers.append(
            Server(
                "mcpvault",
                [args.mcpvault, copy("mcpvault")],
                env,
                lambda query: ("search_notes", {"query": query, "limit": 10}),
                lambda path: ("read_note", {"path": path}),
            )
        )
        versions.append(f"mcpvault {version(args.mcpvault, env)}")
    if args.qmd:
        collection = f"qmd-{args.notes}"
        if collection not in run(args.qmd, "collection", "list", env=env):
            run(args.qmd, "collection", "add", copy("qmd"), "--name", collection, env=env)
        lexical = lambda query: [{"type": "lex", "query": query}]
        servers.append(
            Server(
                "qmd, by words",
                [args.qmd, "mcp"],
                env,
                lambda query: ("query", {"searches": lexical(query), "limit": 10, "rerank": False}),
                None,
            )
        )
        versions.append(version(args.qmd, env))
    return servers, versions


def token_counter():
    """Counts tokens, and says how."""
    try:
        import tiktoken

        encoding = tiktoken.get_encoding("o200k_base")
        return (lambda text: len(encoding.encode_ordinary(text))), "o200k_base tokens"
    except Exception as error:  # No such package, or no file of its words and no network.
        print(f"tokens are a quarter of the bytes: {type(error).__name__}", file=sys.stderr)
        return (lambda text: len(text.encode()) // 4), "tokens (bytes / 4)"


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def measure_lists(servers):
    """What the list of tools costs."""
    count, unit = token_counter()
    print(f"\n| tools/list | tools | bytes | {unit} of names, descriptions and inputs | of all |")
    print("| --- | --- | --- | --- | --- |")
    for server in servers:
        client = server.start(server.eras[-1])
        client.begin()
        tools = client.ask("tools/list", {})["tools"]
        client.end()
        keys = {"name": "name", "description": "description", "input_schema": "inputSchema"}
        offered = [compact({key: tool.get(at) for key, at in keys.items()}) for tool in tools]
        whole = compact(tools)
        inputs = sum(map(count, offered))
        print(f"| {server.name} | {len(tools)} | {len(whole.encode()):,} | {inputs:,} | {count(whole):,} |", flush=True)


def measure_starts(servers, rounds):
    """From the start of the process to the first answer, in turns."""
    times = {(server.name, era): [] for server in servers for era in (NEW, OLD)}
    for _ in range(rounds + 1):
        for server in servers:
            for era in server.eras:
                def first_answer():
                    client = server.start(era)
                    client.begin()
                    client.ask("tools/list", {})
                    return client

                try:
                    took, client = timed(first_answer)
                    client.end()
                    times[server.name, era].append(took)
                except Fault as fault:
                    print(f"{server.name}, {era}: {fault}", file=sys.stderr)
    print(f"\n| start to the answer to tools/list, ms, {rounds} in turns | {NEW}: least | median | most "
          f"| {OLD}: least | median | most | times ours |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    ours = None
    for server in servers:
        cells = []
        for era in (NEW, OLD):
            # The first is not counted: the disk's cache is cold.
            took = times[server.name, era][1:]
            cells += [f"{value:.0f}" for value in (min(took), statistics.median(took), max(took))] if took else [""] * 3
        median = statistics.median(times[server.name, OLD][1:])
        ours = ours or median
        print(f"| {server.name} | {' | '.join(cells)} | {median / ours:.1f} |", flush=True)


def row(name, times, ours, cpu):
    median = statistics.median(times)
    ratio = statistics.median(mine / other for mine, other in zip(times, ours))
    return (
        f"| {name} | {min(times):.1f} | {median:.1f} | {percentile(times, 95):.1f} | {max(times):.1f} | {ratio:.1f} "
        f"| {cpu:.1f} |"
    )


def processes(pid):
    """A process and those that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(process for child in children for process in processes(child))]


def resident(pid):
    """Resident memory, in MB."""
    status = [Path(f"/proc/{process}/status").read_text() for process in processes(pid)]
    return sum(int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) for text in status) / 1024


def cpu_ms(pid):
    """CPU time so far."""
    stats = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in processes(pid)]
    return sum(int(stat[11]) + int(stat[12]) for stat in stats) * 1000 / os.sysconf("SC_CLK_TCK")


def measure_searches(servers, queries, paths, pause, paused):
    """Searches, reads and lists of running servers, in turns."""
    clients = {}
    firsts = {}
    for server in servers:
        client = server.start(server.eras[-1])
        client.begin()
        client.ask("tools/list", {})
        firsts[server.name], _ = timed(lambda: client.call(*server.search("garden")))
        # A server may go on with its start in the background.
        time.sleep(3)
        client.settled()
        clients[server.name] = client
    search = lambda server, n: ("tools/call", named(server.search(queries[n % len(queries)])))
    kinds = [
        ("search, warm", search, len(queries), 0),
        (f"search, {pause:g} s after the last", search, paused, pause),
        ("tools/list", lambda server, n: ("tools/list", {}), len(queries), 0),
        (
            "read a note",
            lambda server, n: server.read and ("tools/call", named(server.read(paths[n % len(paths)]))),
            len(queries),
            0,
        ),
    ]
    print("\n| first search, ms | " + " | ".join(firsts) + " |\n| --- |" + " --- |" * len(firsts))
    print("| | " + " | ".join(f"{took:.1f}" for took in firsts.values()) + " |", flush=True)
    for kind, request, count, wait in kinds:
        times = {server.name: [] for server in servers}
        before = {name: cpu_ms(client.process.pid) for name, client in clients.items()}
        for first in range(0, count, TURN):
            for server in servers:
                for n in range(first, min(first + TURN, count)):
                    if asked := request(server, n):
                        time.sleep(wait)
                        took, _ = timed(lambda: clients[server.name].ask(*asked))
                        times[server.name].append(took)
        print(f"\n| {kind}, ms, {count} in turns | least | median | p95 | most | times ours | CPU |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for name, took in times.items():
            if took:
                cpu = (cpu_ms(clients[name].process.pid) - before[name]) / count
                print(row(name, took, times[servers[0].name], cpu), flush=True)
    print("\n| resident memory after that, MB | " + " | ".join(clients) + " |\n| --- |" + " --- |" * len(clients))
    print("| | " + " | ".join(f"{resident(client.process.pid):.0f}" for client in clients.values()) + " |")
    for client in clients.values():
        client.end()


def named(call):
    tool, args = call
    return {"name": tool, "arguments": args}


def handles(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Load:
    """Clients that ask without a pause until the time is over."""

    # A client of the older revisions leaves after so many calls, and another comes.
    SESSION = 200

    def __init__(self, port, eras, queries, paths, until):
        self.port, self.eras, self.queries, self.paths, self.until = port, eras, queries, paths, until
        self.calls, self.errors, self.times = Counter(), Counter(), []
        self.lock = threading.Lock()

    def request(self, chance):
        kind = chance.choices(["search", "read", "backlinks", "tools", "resources"], [4, 3, 1, 1, 1])[0]
        if kind == "search":
            return kind, "tools/call", named(("search_notes", {"query": chance.choice(self.queries)}))
        if kind == "read":
            return kind, "tools/call", named(("read_note", {"path": chance.choice(self.paths)}))
        if kind == "backlinks":
            return kind, "tools/call", named(("list_backlinks", {"path": chance.choice(self.paths)}))
        return kind, f"{kind}/list", {}

    def client(self, number):
        era, chance = self.eras[number % len(self.eras)], random.Random(number)
        client = None
        calls, errors, times = Counter(), Counter(), []
        while time.monotonic() < self.until:
            kind, method, params = self.request(chance)
            try:
                if client is None:
                    client = Http(self.port, era)
                    client.begin()
                took, _ = timed(lambda: client.ask(method, params))
                calls[era, kind] += 1
                times.append((kind, took))
                if client.last >= self.SESSION:
                    client.end()
                    client = None
            except (Fault, OSError, http.client.HTTPException) as error:
                errors[f"{era} {kind}: {type(error).__name__} {str(error)[:120]}"] += 1
                client = None
            self.add(number, calls)
        if client:
            client.end()
        with self.lock:
            self.errors += errors
            self.times += times

    def add(self, number, calls):
        self.so_far[number] = sum(calls.values())

    def run(self, count):
        self.so_far = [0] * count
        threads = [threading.Thread(target=self.client, args=[number]) for number in range(count)]
        for thread in threads:
            thread.start()
        return threads


def measure_load(args, vault, index, env, queries, paths):
    """Many clients at once over HTTP."""
    command = [args.bin / "vault-agent", "mcp", "--http", "127.0.0.1:0", "--vault", vault, "--index", index]
    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        port = None
        while port is None:
            line = process.stderr.readline()
            if not line:
                sys.exit("the server ended")
            if found := re.search(r"listening on http://[^:]+:(\d+)", line):
                port = int(found.group(1))
        threading.Thread(target=process.stderr.read, daemon=True).start()
        for era in (NEW, OLD):
            client = Http(port, era)
            client.begin()
            client.call("search_notes", {"query": "garden"})
            client.end()
        time.sleep(2)
        print(f"\n| {args.clients} clients over HTTP | handles | of them connections "
              "| resident memory, MB | calls a second |")
        print("| --- | --- | --- | --- | --- |")

        def state(name, rate):
            rate = f"{rate:,.0f}" if rate is not None else ""
            memory = f"{resident(process.pid):.1f}"
            print(f"| {name} | {handles(process.pid)} | {sockets(process.pid)} | {memory} | {rate} |", flush=True)

        state("before", None)
        step = 60 * args.minutes / 3
        begin = time.monotonic()
        load = Load(port, args.era or (NEW, OLD), queries, paths, begin + 3 * step)
        threads = load.run(args.clients)
        before = 0
        for third in range(1, 4):
            # Shortly before the end, while all are connected.
            time.sleep(max(0, begin + third * step - 0.5 - time.monotonic()))
            calls = sum(load.so_far)
            state(f"after {third * step:.0f} s", (calls - before) / step)
            before = calls
        for thread in threads:
            thread.join()
        time.sleep(5)
        state("5 s after the last", None)
        print(f"\n{sum(load.so_far):,} calls, {sum(load.errors.values())} errors")
        for error, count in load.errors.most_common(10):
            print(f"- {count} × {error}")
        print("\n| ms in this crowd | median | p95 | most |\n| --- | --- | --- | --- |")
        for kind in sorted({kind for kind, _ in load.times}):
            took = [took for of, took in load.times if of == kind]
            print(f"| {kind} | {statistics.median(took):.1f} | {percentile(took, 95):.1f} | {max(took):.1f} |")
    finally:
        process.terminate()
        process.wait(20)


def sockets(pid):
    def target(name):
        try:
            return os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            return ""

    return sum(target(name).startswith("socket:") for name in os.listdir(f"/proc/{pid}/fd"))


def machine():
    text = Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", text)
    memory = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text()).group(1)) / 2**20
    model = model.group(1) if model else platform.machine()
    return f"{os.cpu_count()} cores, {model}, {memory:.0f} GB, load {os.getloadavg()[0]:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path)
    parser.add_argument("--work", type=Path, default=Path("/tmp/mcp-bench"))
    parser.add_argument("--notes", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=15, help="starts of each server")
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--paused", type=int, default=30, help="searches with a pause before each")
    parser.add_argument("--pause", type=float, default=1)
    parser.add_argument("--load", action="store_true", help="only the clients over HTTP")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--era", action="append", choices=[NEW, OLD], help="of the clients over HTTP; both by turns")
    for peer in ("turbovault", "mcpvault", "qmd"):
        parser.add_argument(f"--{peer}", type=Path)
    args = parser.parse_args()
    args.bin, args.work = args.bin.resolve(), args.work.resolve()
    for peer in ("turbovault", "mcpvault", "qmd"):
        if getattr(args, peer):
            setattr(args, peer, getattr(args, peer).absolute())
    home = args.work / "home"
    home.mkdir(parents=True, exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}

    vault, index = vault_of(args, env)
    queries, paths = queries_of(vault, args.searches)
    servers, versions = servers_of(args, vault, index, env)
    commit = run("git", "-C", Path(__file__).parent, "describe", "--always", "--dirty")
    print(f"commit {commit}; {machine()}; {len(list(vault.rglob('*.md')))} notes; {', '.join(versions)}", flush=True)
    if args.load:
        return measure_load(args, vault, index, env, queries, paths)
    measure_lists(servers)
    measure_starts(servers, args.rounds)
    measure_searches(servers, queries, paths, args.pause, args.paused)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
