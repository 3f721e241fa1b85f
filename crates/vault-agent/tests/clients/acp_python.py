"""The Python package `agent-client-protocol` against the agent for editors: `acp_python.py PROGRAM`, where PROGRAM is
vault-agent.

Every method that is declared, with a client that declares forms and with one that declares nothing; the model is a script
on loopback.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import acp
from acp import schema

PROGRAM = str(Path(sys.argv[1]).resolve())
DEADLINE = 30  # seconds
NOTES = {"Garden.md": "# Garden\n\nPrune the roses in March.\n", "Log.md": "- begun\n"}
APPEND = ("append_to_note", {"path": "Log.md", "content": "- done"})
APPENDED = "- begun\n- done\n"
CASES = []


def case(settings=""):
    def add(run):
        CASES.append((run, settings))
        return run

    return add


class Model:
    """A model that does as a case says: `reply` is given the request, and returns a text or a list of calls."""

    def __init__(self):
        self.reply = lambda asked: "ok"
        self.requests = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                model.requests.append(asked)
                body = model.body(model.reply(asked)).encode()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}/v1"

    def body(self, reply):
        def chunk(delta, finish=None):
            return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

        if isinstance(reply, str):
            chunks = [chunk({"content": reply}), chunk({}, "stop")]
        else:
            calls = [
                {
                    "index": index,
                    "id": f"call_{len(self.requests)}_{index}",
                    "type": "function",
                    "function": {"name": tool, "arguments": json.dumps(args)},
                }
                for index, (tool, args) in enumerate(reply)
            ]
            chunks = [chunk({"tool_calls": calls}), chunk({}, "tool_calls")]
        return "".join(f"data: {json.dumps(it)}\n\n" for it in chunks) + "data: [DONE]\n\n"

    def calls(self, *calls):
        """Calls once, then says that it is done."""
        self.reply = lambda asked: "Done." if asked["messages"][-1]["role"] == "tool" else list(calls)


class Place:
    """A vault, a home for what the program keeps, and a model."""

    def __init__(self, folder, settings):
        self.folder = Path(folder)
        self.vault = self.folder / "Notes"
        (self.vault / ".obsidian").mkdir(parents=True)
        for name, text in NOTES.items():
            (self.vault / name).write_text(text)
        self.model = Model()
        self.env = {"PATH": os.environ["PATH"], "HOME": folder, "VAULT_AGENT_PROVIDER": self.model.address}
        self.env |= {"VAULT_AGENT_MODEL": "scripted", "VAULT_AGENT_ALLOWED_MODELS": "scripted,other"}
        for name in ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"]:
            self.env[name] = str(self.folder / name.lower())
        configuration = self.folder / "xdg_config_home" / "vault-index"
        configuration.mkdir(parents=True)
        (configuration / "tools.toml").write_text(settings)

    def read(self, name):
        return (self.vault / name).read_text()


class Editor(acp.Client):
    """An editor; what its person answers is set by the case."""

    def __init__(self):
        self.updates = []
        self.asked = []
        self.choose = None
        self.fill = None

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked.append((tool_call, options))
        return await self.choose()

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update)

    async def create_elicitation(self, message, mode, **kwargs):
        return self.fill(mode)

    def on_connect(self, conn):
        pass

    def of(self, kind):
        return [update for update in self.updates if update.session_update == kind]

    def said(self):
        return "".join(update.content.text for update in self.of("agent_message_chunk"))

    def chooses(self, option):
        async def choose():
            outcome = schema.AllowedOutcome(outcome="selected", option_id=option)
            return schema.RequestPermissionResponse(outcome=outcome)

        self.choose = choose


class Agent:
    """An agent of its own process, and an editor."""

    def __init__(self, place, capabilities):
        self.place, self.capabilities, self.editor = place, capabilities, Editor()

    async def __aenter__(self):
        self.spawned = acp.spawn_agent_process(
            self.editor, PROGRAM, "acp", env=self.place.env, use_unstable_protocol=True
        )
        self.connection, self.process = await self.spawned.__aenter__()
        self.hello = await self.connection.initialize(protocol_version=1, client_capabilities=self.capabilities)
        return self

    async def __aexit__(self, *error):
        await self.spawned.__aexit__(*error)

    async def open(self):
        self.session = await self.connection.new_session(cwd=str(self.place.vault), mcp_servers=[])
        self.id = self.session.session_id

    async def say(self, text):
        response = await self.connection.prompt(session_id=self.id, prompt=[acp.text_block(text)])
        return response.stop_reason


def has_forms(capabilities):
    return capabilities.elicitation is not None


@case()
async def every_method_that_is_declared(place, capabilities):
    place.model.reply = lambda asked: "It is in March [Garden.md:3]."
    async with Agent(place, capabilities) as agent:
        assert agent.hello.protocol_version == 1
        declared = agent.hello.agent_capabilities
        assert declared.load_session and declared.prompt_capabilities.embedded_context
        await agent.connection.authenticate(method_id=agent.hello.auth_methods[0].id)
        await agent.open()
        assert [option.id for option in agent.session.config_options] == ["mode", "model"]
        assert await agent.say("When do I prune?") == "end_turn"
        assert agent.editor.said() == "It is in March [Garden.md:3]."
        await agent.connection.set_session_mode(session_id=agent.id, mode_id="read")
        answer = await agent.connection.set_config_option(session_id=agent.id, config_id="model", value="other")
        assert [option.current_value for option in answer.config_options] == ["read", "other"]
        [listed] = (await agent.connection.list_sessions(cwd=str(place.vault))).sessions
        assert (listed.session_id, listed.title) == (agent.id, "When do I prune?")
        await agent.connection.close_session(session_id=agent.id)
        agent.editor.updates.clear()
        await agent.connection.load_session(session_id=agent.id, cwd=str(place.vault), mcp_servers=[])
        kinds = [update.session_update for update in agent.editor.updates[:2]]
        assert kinds == ["user_message_chunk", "agent_message_chunk"], kinds
        await agent.connection.resume_session(session_id=agent.id, cwd=str(place.vault))
        assert await agent.say("Once more") == "end_turn"
        assert "When do I prune" in json.dumps(place.model.requests[-1]["messages"])
        await agent.connection._conn.send_request("session/delete", {"sessionId": agent.id})
        assert (await agent.connection.list_sessions()).sessions == []


@case()
async def a_change_its_diff_and_its_question(place, capabilities):
    place.model.calls(APPEND)
    async with Agent(place, capabilities) as agent:
        await agent.open()
        agent.editor.chooses("allow")
        assert await agent.say("Add it") == "end_turn"
        assert place.read("Log.md") == APPENDED
        [(call, options)] = agent.editor.asked
        [diff] = [content for content in call.content if content.type == "diff"]
        assert (diff.path, diff.old_text, diff.new_text) == (str(place.vault / "Log.md"), "- begun\n", APPENDED)
        kinds = [option.kind for option in options]
        assert {"allow_once", "allow_always", "reject_once", "reject_always"} == set(kinds), kinds
        assert ("edit" in [option.option_id for option in options]) == has_forms(capabilities)
        assert [update.status for update in agent.editor.of("tool_call_update")][-1] == "completed"


@case('denied_tools = ["append_to_note"]\n')
async def a_deny_that_the_client_answers_with_yes(place, capabilities):
    place.model.calls(APPEND)
    async with Agent(place, capabilities) as agent:
        await agent.open()
        agent.editor.chooses("allow_always")
        await agent.say("Add it")
        assert (place.read("Log.md"), agent.editor.asked) == ("- begun\n", [])
        assert "denied" in json.dumps(place.model.requests[-1]["messages"]).lower()


@case()
async def a_form_where_it_is_declared(place, capabilities):
    place.model.calls(APPEND)
    async with Agent(place, capabilities) as agent:
        await agent.open()
        choices = iter(["reject_and_say"] if has_forms(capabilities) else ["reject"])

        async def choose():
            outcome = schema.AllowedOutcome(outcome="selected", option_id=next(choices))
            return schema.RequestPermissionResponse(outcome=outcome)

        agent.editor.choose = choose
        agent.editor.fill = lambda mode: schema.AcceptElicitationResponse(
            action="accept", content={"reason": "Ask me tomorrow."}
        )
        await agent.say("Add it")
        assert place.read("Log.md") == "- begun\n"
        told = json.dumps(place.model.requests[-1]["messages"])
        assert "Tool call denied" in told and ("Ask me tomorrow." in told) == has_forms(capabilities), told


async def asked_and_not_answered(agent):
    """A turn whose question a person has before them."""
    shown = asyncio.Event()

    async def choose():
        shown.set()
        return await asyncio.Future()

    agent.editor.choose = choose
    turn = asyncio.create_task(agent.say("Add it"))
    await shown.wait()
    return turn


@case()
async def cancelled_while_a_person_decides(place, capabilities):
    place.model.calls(APPEND)
    async with Agent(place, capabilities) as agent:
        await agent.open()
        turn = await asked_and_not_answered(agent)
        await agent.connection.cancel(session_id=agent.id)
        assert await turn == "cancelled"
        assert place.read("Log.md") == "- begun\n"


@case()
async def a_question_that_is_open_when_the_process_dies_in_a_second_one(place, capabilities):
    place.model.calls(APPEND)
    async with Agent(place, capabilities) as first:
        await first.open()
        turn = await asked_and_not_answered(first)
        first.process.kill()
        await first.process.wait()
        turn.cancel()
    async with Agent(place, capabilities) as second:
        second.id = first.id
        await second.connection.load_session(session_id=first.id, cwd=str(place.vault), mcp_servers=[])
        second.editor.chooses("allow")
        assert await second.say("/continue") == "end_turn"
        assert (place.read("Log.md"), len(second.editor.asked)) == (APPENDED, 1)
        assert "Done." in second.editor.said()


@case()
async def the_open_note_and_the_selection(place, capabilities):
    place.env["VAULT_AGENT_TOOLSETS"] = "actions"
    place.model.calls(("editor_replaceSelection", {"text": "Prune them in April."}))
    async with Agent(place, capabilities) as agent:
        await agent.open()
        agent.editor.chooses("allow")
        uri = (place.vault / "Garden.md").as_uri()
        note = acp.resource_block(acp.embedded_text_resource(uri, "Prune the roses in March."))
        blocks = [note, acp.text_block("Say April.")]
        await agent.connection.prompt(session_id=agent.id, prompt=blocks)
        assert place.read("Garden.md") == "# Garden\n\nPrune them in April.\n"


async def run(run, settings, capabilities):
    with tempfile.TemporaryDirectory(prefix="acp-python-") as folder:
        await asyncio.wait_for(run(Place(folder, settings), capabilities), DEADLINE)


def main():
    forms = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())
    eras = {
        "forms": schema.ClientCapabilities(elicitation=forms),
        "nothing": schema.ClientCapabilities(),
    }
    failures = 0
    for era, capabilities in eras.items():
        for test, settings in CASES:
            started = time.monotonic()
            try:
                asyncio.run(run(test, settings, capabilities))
                print(f"ok      {era}: {test.__name__} ({time.monotonic() - started:.1f} s)", flush=True)
            except BaseException:
                failures += 1
                print(f"FAILED  {era}: {test.__name__}\n{traceback.format_exc()}", flush=True)
    total = len(eras) * len(CASES)
    print(f"agent-client-protocol {version('agent-client-protocol')}: {total - failures} of {total} cases passed")
    sys.exit(1 if failures else 0)


main()
