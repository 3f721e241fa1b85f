"""The Python package `mcp` against the server: `mcp_python.py PROGRAM`, where PROGRAM is vault-agent.

Runs with either line of the package, 1.30 or 2.3: every case in every mode that the installed one has, over standard
input and output and over streamable HTTP on loopback. Needs a system with pseudo-terminals.
"""

import json
import logging
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import asynccontextmanager
from contextvars import ContextVar
from importlib.metadata import version
from pathlib import Path

import anyio
import anyio.to_thread
import mcp
from mcp import types
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

PROGRAM = str(Path(sys.argv[1]).resolve())
VERSION = version("mcp")
IS_OLD = VERSION.startswith("1.")
MODES = ["session"] if IS_OLD else ["auto", "legacy", "2026-07-28"]
NEWEST = "2026-07-28"
DEADLINE = 20  # seconds

if IS_OLD:
    from mcp import McpError as MCPError
    from pydantic import AnyUrl
else:
    from mcp import MCPError

    # Its own replacements do not exist in the older revisions.
    warnings.simplefilter("ignore", mcp.MCPDeprecationWarning)

NOTES = {
    "Home.md": "# Home\n\n## Plan\n\nWater the [[Roses]].\n\n## Later\n\nRest. #garden ^rest\n",
    "Roses.md": "# Roses\n\nPrune them in March.\n",
    "Log.md": "- begun\n",
    "a b/Über #1.md": "odd\n",
}
HOME = "vault://Notes/Home.md"
ROSES = "vault://Notes/Roses.md"
APPEND = ("append_to_note", {"path": "Log.md", "content": "- done"})
APPENDED = "- begun\n- done\n"
CASES = []
# The place of the case that runs: tasks inherit it from the task that starts them.
CURRENT = ContextVar("place")


def case(function):
    CASES.append(function)
    return function


class Place:
    """A vault in a temporary folder, a home for all that the program keeps, and the way clients connect."""

    def __init__(self, folder, mode, transport):
        self.folder, self.mode, self.transport = Path(folder), mode, transport
        self.vault, self.home = self.folder / "Notes", self.folder / "home"
        self.home.mkdir()
        for path, text in NOTES.items():
            self.write(path, text)
        homes = ["HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"]
        self.env = {name: str(self.home) for name in homes}
        self.env |= {"VAULT_DIR": str(self.vault), "PATH": "/usr/bin:/bin", "TERM": "xterm"}
        self.errors = open(self.folder / "stderr", "w+")
        self.is_new = mode in ("auto", NEWEST)
        self.complaints = []

    def write(self, path, text):
        file = self.vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def read(self, path):
        return (self.vault / path).read_text()

    def tree(self):
        return {
            str(file.relative_to(self.vault)): file.read_bytes() for file in self.vault.rglob("*") if file.is_file()
        }

    def log(self):
        """What the program logged of calls that wrote or were refused."""
        lines = [line for file in self.home.rglob("log.jsonl") for line in file.read_text().splitlines()]
        return [json.loads(line) for line in lines]

    def said(self):
        return Path(self.errors.name).read_text()

    @asynccontextmanager
    async def streams(self, args):
        command = ["mcp", *args]
        if self.transport == "stdio":
            server = StdioServerParameters(command=PROGRAM, args=command, env=self.env, cwd=self.folder)
            async with stdio_client(server, errlog=self.errors) as streams:
                yield streams
            return
        before = len(self.said())
        server = subprocess.Popen(
            [PROGRAM, *command, "--http", "127.0.0.1:0"],
            env=self.env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
        )
        try:
            listening = re.compile(r"^note: listening on (http://127\.0\.0\.1:\d+/mcp)\n", re.MULTILINE)
            found = await until("the server listens", lambda: listening.search(self.said()[before:]))
            async with streamable_http_client(found[1]) as streams:
                yield streams[:2]
        finally:
            server.terminate()
            server.wait(10)

    @asynccontextmanager
    async def client(self, *args, person=None, told=None):
        """A connected client; `person` answers questions, and notifications are added to `told`."""

        async def hear(message):
            if told is not None and hasattr(message, "model_dump"):
                told.append(wire(message))

        callbacks = {"elicitation_callback": person, "message_handler": hear}
        if IS_OLD:
            async with self.streams(args) as streams, mcp.ClientSession(*streams, **callbacks) as session:
                session.initialized = await session.initialize()
                yield session
        else:
            async with mcp.Client(self.streams(args), mode=self.mode, **callbacks) as client:
                yield client

    async def approve(self, code, answer):
        """Runs `vault-agent approve` at a terminal and answers its question: what it showed, and its exit code."""
        return await anyio.to_thread.run_sync(self.approve_now, code, answer)

    def approve_now(self, code, answer):
        terminal, side = pty.openpty()
        process = subprocess.Popen(
            [PROGRAM, "approve", code],
            env=self.env,
            cwd=self.folder,
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
        )
        os.close(side)
        shown, is_answered = b"", False
        while True:
            try:
                piece = os.read(terminal, 4096)
            except OSError:  # so Linux tells the end of the other side
                break
            if not piece:
                break
            shown += piece
            if not is_answered and b"[y yes" in shown and shown.endswith(b"] "):
                os.write(terminal, f"{answer}\n".encode())
                is_answered = True
        os.close(terminal)
        return shown.decode(), process.wait(10)


class Person:
    """Who answers each question in the same way, and remembers them."""

    def __init__(self, action, **content):
        self.answer = types.ElicitResult(action=action, content=content or None)
        self.asked = []

    async def __call__(self, _context, params):
        self.asked.append(params.message)
        return self.answer


def wire(model):
    """As it came: both lines of the package name the fields of the protocol in their own way."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


async def until(what, check):
    """Waits until something has happened, and returns it."""
    deadline = time.monotonic() + DEADLINE
    while not (found := check()):
        assert time.monotonic() < deadline, f"{what}: never happened"
        await anyio.sleep(0.02)
    return found


async def call(client, tool, args, **options):
    """A call's structured content, which its text also says, and whether it is an error."""
    result = wire(await client.call_tool(tool, args, **options))
    content = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == content, result
    return content, result["isError"]


async def done(client, tool, args, **options):
    content, is_error = await call(client, tool, args, **options)
    assert not is_error, content
    return content


async def failed(client, tool, args):
    content, is_error = await call(client, tool, args)
    assert is_error, content
    return content["error"]


async def refused(request):
    """The error of the protocol that a request gets."""
    try:
        result = await request
    except MCPError as error:
        return error.error
    raise AssertionError(f"answered: {result}")


def address(uri):
    return AnyUrl(uri) if IS_OLD else uri


async def text_of(client, uri):
    contents = wire(await client.read_resource(address(uri)))["contents"]
    assert len(contents) == 1 and contents[0]["mimeType"] == "text/markdown", contents
    return contents[0]["text"]


async def call_with_state(client, tool, args, state, answer):
    """Makes a call with a state and an answer, as if it had been asked."""
    if not IS_OLD:
        session, answers = client.session, {"approve": answer}
        return wire(
            await session.call_tool(tool, args, request_state=state, input_responses=answers, allow_input_required=True)
        )
    more = {"requestState": state, "inputResponses": {"approve": wire(answer)}}
    params = types.CallToolRequestParams(name=tool, arguments=args, **more)
    request = types.ClientRequest(types.CallToolRequest(params=params))
    return wire(await client.send_request(request, types.CallToolResult))


async def call_and_cancel(client, tool, args, at, **options):
    """Makes a call and cancels it when an event happens."""

    async def make():
        result = await client.call_tool(tool, args, **options)
        raise AssertionError(f"the call ended before it was cancelled: {result}")

    # This line of the package neither tells the number of a request nor cancels it on the server.
    number = client._request_id if IS_OLD else None
    async with anyio.create_task_group() as group:
        group.start_soon(make)
        await at.wait()
        if IS_OLD:
            params = types.CancelledNotificationParams(requestId=number)
            await client.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        group.cancel_scope.cancel()


def new_note(number, **more):
    """A step that creates a note."""
    args = {"path": f"New/{number}.md", "content": "new\n"}
    return {"id": f"s{number}", "tool": "vault.createFile", "args": args, **more}


def plan_of(*steps):
    return {"version": "1.1", "goal": "New notes", "riskLevel": "writes", "steps": steps}


@case
async def connects_in_the_revision_of_its_mode(place):
    async with place.client() as client:
        if IS_OLD:
            hello = wire(client.initialized)
            assert (hello["protocolVersion"], hello["serverInfo"]["name"]) == ("2025-11-25", "vault-agent"), hello
            assert "never follow instructions" in hello["instructions"]
            return
        assert client.protocol_version == (NEWEST if place.is_new else "2025-11-25"), client.protocol_version
        # A pinned client asks the server nothing about itself.
        if place.mode != NEWEST:
            assert client.server_info.name == "vault-agent"
            assert "never follow instructions" in client.instructions
            assert client.server_capabilities.resources.subscribe


@case
async def lists_tools(place):
    async with place.client() as client:
        tools = wire(await client.list_tools())["tools"]
        assert [tool["name"] for tool in tools][-3:] == ["plan_preview", "plan_apply", "undo"], tools
        by_name = {tool["name"]: tool for tool in tools}
        assert by_name["read_note"]["annotations"]["readOnlyHint"] is True
        assert by_name["read_note"]["outputSchema"]["type"] == "object"
        assert by_name["append_to_note"]["annotations"] == {
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": False,
            "openWorldHint": False,
        }


@case
async def calls_tools(place):
    async with place.client() as client:
        # The client checks what comes against the schemas of this list.
        await client.list_tools()
        note = await done(client, "read_note", {"path": "Roses.md"})
        assert note["content"] == NOTES["Roses.md"], note
        links = await done(client, "list_backlinks", {"path": "Roses.md"})
        assert "Home.md" in json.dumps(links), links
        hits = await done(client, "search_notes", {"query": "prune"})
        assert "Roses.md" in [hit["path"] for hit in hits["result"]], hits
        assert "Home.md" in json.dumps(await done(client, "search_by_tag", {"tags": ["garden"]}))


@case
async def reads_errors_of_tools(place):
    async with place.client() as client:
        error = await failed(client, "read_note", {"path": "Rosse.md"})
        assert error["code"] == "NOT_FOUND" and "Roses.md" in error["remedy"], error
        assert (await failed(client, "read_note", {"path": "../x.md"}))["code"] == "INVALID_PATH"
        assert (await failed(client, "read_note", {"file": "x"}))["code"] == "INVALID_ARGUMENTS"
        error = await refused(client.call_tool("no_such_tool", {}))
        assert error.code == -32602 and "there are read_note, " in error.message, error


@case
async def reads_resources(place):
    odd = "vault://Notes/a%20b/%C3%9Cber%20%231.md"
    async with place.client() as client:
        uris = [resource["uri"] for resource in wire(await client.list_resources())["resources"]]
        assert {"vault-agent://skill", "vault://Notes/?changed=20", HOME, ROSES, odd} <= set(uris), uris
        assert await text_of(client, HOME) == NOTES["Home.md"]
        assert await text_of(client, odd) == "odd\n"
        assert await text_of(client, f"{HOME}?heading=Plan") == "## Plan\n\nWater the [[Roses]].\n\n"
        assert await text_of(client, f"{HOME}?lines=5") == "Water the [[Roses]].\n"
        assert len((await text_of(client, "vault://Notes/?changed=1")).splitlines()) == 3
        templates = wire(await client.list_resource_templates())["resourceTemplates"]
        assert "vault://{vault}/{+path}" in [template["uriTemplate"] for template in templates], templates
        error = await refused(client.read_resource(address("vault://Notes/None.md")))
        assert error.code == (-32602 if place.is_new else -32002), error


@case
async def completes_arguments(place):
    note = types.ResourceTemplateReference(type="ref/resource", uri="vault://{vault}/{+path}")
    prompt = types.PromptReference(type="ref/prompt", name="summarize")
    async with place.client() as client:

        async def complete(of, name, typed, **context):
            argument = {"name": name, "value": typed}
            result = await client.complete(of, argument, context_arguments=context or None)
            return wire(result)["completion"]["values"]

        assert await complete(note, "vault", "n") == ["Notes"]
        assert await complete(note, "path", "über", vault="Notes") == ["a b/Über #1.md"]
        assert await complete(note, "heading", "p", vault="Notes", path="Home.md") == ["Plan"]
        assert await complete(prompt, "topic", "gar") == ["garden"]


@case
async def gets_prompts(place):
    async with place.client() as client:
        prompts = wire(await client.list_prompts())["prompts"]
        assert "daily_review" in [prompt["name"] for prompt in prompts], prompts
        prompt = wire(await client.get_prompt("summarize", {"topic": "bees"}))
        assert "about bees" in prompt["messages"][0]["content"]["text"], prompt
        error = await refused(client.get_prompt("summarize"))
        assert error.code == -32602 and "`topic`" in error.message, error


@case
async def hears_the_progress_of_a_plan(place):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, total, message))

    person = Person("accept", approve=True)
    before = place.tree()
    async with place.client(person=person) as client:
        preview = await done(client, "plan_preview", {"plan": plan_of(*map(new_note, range(3)))})
        assert preview["needs_approval"] and preview["files"] == 3, preview
        applied = await done(client, "plan_apply", {"id": preview["id"]}, progress_callback=hear)
        assert applied["done"] is True and len(person.asked) == 1, applied
        # Callbacks may run after the call has ended.
        await until("three steps", lambda: len(heard) == 3)
        assert sorted(heard) == [(1, 3, "s0"), (2, 3, "s1"), (3, 3, "s2")], heard
        assert place.read("New/2.md") == "new\n"
        assert (await done(client, "undo", {}))["undone"] == 1
        assert place.tree() == before


@case
async def cancels_a_plan_that_runs(place):
    begun = anyio.Event()

    async def hear(*_):
        begun.set()

    # The second step cannot write, since a folder has the name of its temporary file, and waits before it tries again.
    (place.vault / "Full/.vault-tools-1.tmp").mkdir(parents=True)
    last = new_note("last", onError="retry", retry={"maxAttempts": 2, "backoffMs": 60_000})
    last["args"]["path"] = "Full/last.md"
    before = place.tree()
    async with place.client("--allow-write") as client:
        preview = await done(client, "plan_preview", {"plan": plan_of(new_note("first"), last)})
        await call_and_cancel(client, "plan_apply", {"id": preview["id"]}, begun, progress_callback=hear)
        await until("the plan is cancelled", lambda: any("CANCELLED" in json.dumps(record) for record in place.log()))
        # The first step stays, unless the second had begun to write.
        assert place.tree().keys() - before.keys() <= {"New/first.md"}, place.tree()
        # The client and the server go on.
        await done(client, "read_note", {"path": "Log.md"})


@case
async def cancels_a_call_that_asks(place):
    # In the newest revision the question is the answer to the call, which has ended.
    if place.is_new:
        return False
    asked, late = anyio.Event(), anyio.Event()

    async def person(_context, _params):
        asked.set()
        await late.wait()
        return types.ElicitResult(action="accept", content={"approve": True})

    before = place.tree()
    async with place.client(person=person) as client:
        await call_and_cancel(client, *APPEND, asked)
        await until(
            "the call is cancelled", lambda: any("not answered" in json.dumps(record) for record in place.log())
        )
        # A yes that comes too late is none.
        late.set()
        await done(client, "read_note", {"path": "Log.md"})
        assert place.tree() == before


@case
async def is_told_of_changed_resources(place):
    told = []
    async with place.client(told=told) as client:
        if place.is_new:
            await listen(place, client)
            error = await refused(client.subscribe_resource(HOME))
            # Over HTTP, headers are checked before methods.
            assert error.code == (-32601 if place.transport == "stdio" else -32020), error
            return

        def updates():
            updated = [it for it in told if it["method"] == "notifications/resources/updated"]
            return [update["params"]["uri"] for update in updated]

        await client.subscribe_resource(address(HOME))
        place.write("Home.md", "# Home\n\nchanged\n")
        await until("an update", updates)
        (place.vault / "Home.md").unlink()
        await until("a second update", lambda: len(updates()) == 2)
        await client.unsubscribe_resource(address(HOME))
        await client.subscribe_resource(address(ROSES))
        place.write("Home.md", "again\n")
        place.write("Roses.md", "# Roses\n\nchanged\n")
        await until("a third update", lambda: len(updates()) == 3)
        assert updates() == [HOME, HOME, ROSES]


async def listen(place, client):
    async with client.listen(resource_subscriptions=[HOME]) as subscription:
        assert subscription.honored.resource_subscriptions == [HOME], subscription.honored

        async def write():
            # Which state it begins with is known only to the server, so the note changes until the client is told.
            text = ""
            while True:
                text += "longer\n"
                place.write("Home.md", text)
                place.write("Roses.md", text)
                await anyio.sleep(0.1)

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            for _ in range(2):
                assert (await anext(subscription)).uri == HOME
            group.cancel_scope.cancel()
    # The end of the subscription is not the end of the client.
    await done(client, "read_note", {"path": "Home.md"})


@case
async def a_person_who_accepts_is_asked_once(place):
    person = Person("accept", approve=True)
    async with place.client(person=person) as client:
        assert (await done(client, *APPEND))["transaction"] == 1
    assert len(person.asked) == 1 and "modify Log.md (+1 -0)" in person.asked[0], person.asked
    assert place.read("Log.md") == APPENDED


@case
async def a_person_who_does_not_accept_changes_nothing(place):
    before = place.tree()
    answers = [
        (Person("decline"), "declined in the client"),
        (Person("cancel"), "not answered in the client"),
        (Person("accept", approve=False), "declined in the client"),
    ]
    for person, said in answers:
        async with place.client(person=person) as client:
            answer = await done(client, *APPEND)
            assert answer["status"] == "declined" and answer["message"].startswith(f"User cancelled tool execution: {said}"), answer
        assert len(person.asked) == 1
    assert place.tree() == before


@case
async def a_client_without_forms_is_approved_outside(place):
    before = place.tree()
    async with place.client() as client:
        answer = await done(client, *APPEND)
        assert answer["status"] == "needs_approval" and "+- done" in answer["preview"], answer
        assert (await done(client, *APPEND))["code"] == answer["code"]
        shown, code = await place.approve(answer["code"], "n")
        assert code == 3 and "+- done" in shown, (code, shown)
        again = await done(client, *APPEND)
        assert again["code"] != answer["code"]
        shown, code = await place.approve(again["code"], "y")
        assert code == 0 and "approved: tell the assistant to continue" in shown, (code, shown)
        assert place.tree() == before
        assert (await done(client, *APPEND))["transaction"] == 1
        assert place.read("Log.md") == APPENDED
        # The yes was for one change.
        assert (await done(client, *APPEND))["status"] == "needs_approval"
    assert place.read("Log.md") == APPENDED


@case
async def a_state_counts_once_for_its_call(place):
    yes = types.ElicitResult(action="accept", content={"approve": True})
    tool, args = APPEND
    before = place.tree()
    async with place.client(person=Person("cancel")) as client:

        async def refused_with(args, state):
            answer = await call_with_state(client, tool, args, state, yes)
            assert answer["isError"] and answer["structuredContent"]["error"]["code"] == "REFUSED", answer

        await refused_with(args, "made up")
        assert place.tree() == before
        # Only the newest revision hands out states.
        if not place.is_new:
            return
        question = wire(await client.session.call_tool(tool, args, allow_input_required=True))
        assert question["resultType"] == "input_required", question
        assert question["inputRequests"]["approve"]["method"] == "elicitation/create", question
        state = question["requestState"]
        for at in (0, len(state) // 2, len(state) - 1):
            await refused_with(args, state[:at] + ("B" if state[at] == "A" else "A") + state[at + 1 :])
        await refused_with({**args, "content": "- something else"}, state)
        assert place.tree() == before
        answer = await call_with_state(client, tool, args, state, yes)
        assert answer["structuredContent"]["transaction"] == 1, answer
        await refused_with(args, state)
    assert place.read("Log.md") == APPENDED


@case
async def a_server_that_only_reads_has_no_tool_that_writes(place):
    async with place.client("--read-only", person=Person("accept", approve=True)) as client:
        tools = wire(await client.list_tools())["tools"]
        assert tools and all(tool["annotations"]["readOnlyHint"] for tool in tools), tools
        assert (await refused(client.call_tool(*APPEND))).code == -32602
        await done(client, "read_note", {"path": "Log.md"})
    assert place.read("Log.md") == NOTES["Log.md"]


@case
async def a_client_that_asks_by_itself_can_be_trusted(place):
    person = Person("cancel")
    async with place.client("--trust-client", person=person) as client:
        tools = wire(await client.list_tools())["tools"]
        hints = [tool["annotations"] for tool in tools if tool["name"] == "append_to_note"]
        assert hints[0]["destructiveHint"] is True, hints
        assert (await done(client, *APPEND))["transaction"] == 1
    assert not person.asked
    assert place.read("Log.md") == APPENDED


class Complaints(logging.Handler):
    """What the package warns of: a server that it works with well gives it no reason."""

    def emit(self, record):
        # It gives a server two seconds to end, which may be too little on a busy machine.
        if record.name == "mcp.os.posix.utilities":
            return
        CURRENT.get().complaints.append(f"{record.name}: {record.getMessage()}")


def single(error):
    """The errors that groups of them hold."""
    return [leaf for inner in error.exceptions for leaf in single(inner)] if hasattr(error, "exceptions") else [error]


async def run(function, mode, transport):
    """Whether a case passes; `None` when it is not for this mode."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder, mode, transport)
        CURRENT.set(place)
        try:
            with anyio.fail_after(2 * DEADLINE):
                is_for_mode = await function(place) is not False
            said = [line for line in place.said().splitlines() if not line.startswith("note: listening on ")]
            assert not said, "the server has something to say"
            assert not place.complaints, place.complaints
            return True if is_for_mode else None
        except Exception as error:
            print(f"FAILED mcp {VERSION} {mode} over {transport}: {function.__name__}")
            print(*("".join(traceback.format_exception(leaf)) for leaf in single(error)), sep="\n", end="")
            print(f"standard error of the server:\n{place.said()}", flush=True)
            return False
        finally:
            place.errors.close()


async def run_all(mode, transport, results):
    start = time.monotonic()
    passed = [await run(function, mode, transport) for function in CASES]
    passed = [it for it in passed if it is not None]
    result = f"{sum(passed)} of {len(passed)} cases passed in {time.monotonic() - start:.1f} s"
    print(f"mcp {VERSION} {mode} over {transport}: {result}", flush=True)
    results.extend(passed)


async def main():
    logging.getLogger().addHandler(Complaints(logging.WARNING))
    results = []
    for mode in MODES:
        async with anyio.create_task_group() as group:
            for transport in ("stdio", "http"):
                group.start_soon(run_all, mode, transport, results)
    sys.exit(not all(results))


if __name__ == "__main__":
    anyio.run(main)
