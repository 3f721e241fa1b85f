// The agent for editors with the official client for TypeScript:
//   node acp_typescript.mjs PROGRAM PACKAGES
// PROGRAM is vault-agent. PACKAGES is a folder in which npm has installed @agentclientprotocol/sdk. Every method that is
// declared, with a client that declares everything and with one that declares nothing; the model is a script on loopback.
// Prints a line for each case; ends with 1 when one failed.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [program, packages] = process.argv.slice(2);
const folder = path.join(path.resolve(packages), "node_modules/@agentclientprotocol/sdk");
const { exports } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
const acp = await import(pathToFileURL(path.join(folder, exports["."].import)));
const { agent: AGENT, client: CLIENT } = acp.methods;

const DEADLINE = 30_000;
const NOTES = { "Garden.md": "# Garden\n\nPrune the roses in March.\n", "Log.md": "- begun\n" };
const ERAS = {
  everything: { elicitation: { form: {} }, session: { notices: {}, compaction: {} }, fs: { readTextFile: true } },
  nothing: {},
};
const APPEND = { tool: "append_to_note", args: { path: "Log.md", content: "- done" } };
const APPENDED = "- begun\n- done\n";

/// A model that does as a case says: `reply` is given the request, and returns a text or calls.
class Model {
  reply = () => "ok";
  requests = [];

  async listen() {
    this.server = createServer((request, response) => {
      let body = "";
      request.on("data", data => (body += data));
      request.on("end", () => {
        const asked = JSON.parse(body);
        this.requests.push(asked);
        this.answer(response, this.reply(asked));
      });
    });
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    this.address = `http://127.0.0.1:${this.server.address().port}/v1`;
  }

  answer(response, reply) {
    // One that is never answered is cancelled.
    if (reply === undefined) return;
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish_reason = null) =>
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    if (typeof reply === "string") {
      send({ content: reply });
      send({}, "stop");
    } else {
      const call = ({ tool, args }, index) => ({
        index,
        id: `call_${this.requests.length}_${index}`,
        type: "function",
        function: { name: tool, arguments: JSON.stringify(args) },
      });
      send({ tool_calls: reply.map(call) });
      send({}, "tool_calls");
    }
    const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
    response.end(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`);
  }

  /// Calls once, then says that it is done.
  calls(...calls) {
    this.reply = asked => (asked.messages.at(-1).role === "tool" ? "Done." : calls);
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/// A vault, a home for what the program keeps, and a model.
class Place {
  folder = mkdtempSync(path.join(tmpdir(), "acp-typescript-"));
  vault = path.join(this.folder, "Notes");
  model = new Model();

  async prepare(settings = "") {
    mkdirSync(path.join(this.vault, ".obsidian"), { recursive: true });
    for (const [name, text] of Object.entries(NOTES)) writeFileSync(path.join(this.vault, name), text);
    await this.model.listen();
    this.env = { PATH: process.env.PATH, HOME: this.folder, VAULT_AGENT_PROVIDER: this.model.address };
    Object.assign(this.env, { VAULT_AGENT_MODEL: "scripted", VAULT_AGENT_ALLOWED_MODELS: "scripted,other" });
    for (const name of ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"]) {
      this.env[name] = path.join(this.folder, name.toLowerCase());
    }
    const configuration = path.join(this.env.XDG_CONFIG_HOME, "vault-index");
    mkdirSync(configuration, { recursive: true });
    writeFileSync(path.join(configuration, "tools.toml"), settings);
  }

  read(name) {
    return readFileSync(path.join(this.vault, name), "utf8");
  }

  remove() {
    this.model.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/// An editor with an agent of its own.
class Editor {
  updates = [];
  asked = [];
  /// What the person answers to a permission request, and to a form.
  choose = () => assert.fail("nobody is asked");
  fill = () => assert.fail("no form is shown");

  constructor(place, capabilities) {
    this.child = spawn(program, ["acp"], { env: place.env, stdio: ["pipe", "pipe", "pipe"] });
    this.stderr = "";
    this.child.stderr.on("data", text => (this.stderr += text));
    this.ended = once(this.child, "exit");
    const stream = acp.ndJsonStream(Writable.toWeb(this.child.stdin), Readable.toWeb(this.child.stdout));
    this.connection = acp
      .client({ name: "acp-typescript" })
      .onRequest(CLIENT.session.requestPermission, ({ params, signal }) => {
        this.asked.push(params);
        return this.choose(params, signal);
      })
      .onRequest(CLIENT.elicitation.create, ({ params }) => this.fill(params))
      .onNotification(CLIENT.session.update, ({ params }) => void this.updates.push(params.update))
      .connect(stream);
    this.agent = this.connection.agent;
    this.capabilities = capabilities;
  }

  async start() {
    const params = { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: this.capabilities };
    this.hello = await this.agent.request(AGENT.initialize, params);
    return this;
  }

  async open(place) {
    this.session = await this.agent.request(AGENT.session.new, { cwd: place.vault, mcpServers: [] });
    this.sessionId = this.session.sessionId;
    return this;
  }

  say(text) {
    return this.agent.request(AGENT.session.prompt, { sessionId: this.sessionId, prompt: [{ type: "text", text }] });
  }

  of(kind) {
    return this.updates.filter(update => update.sessionUpdate === kind);
  }

  said() {
    return this.of("agent_message_chunk").map(update => update.content.text).join("");
  }

  async end() {
    this.child.stdin.end();
    const [code] = await this.ended;
    assert.equal(code, 0, this.stderr);
  }

  kill() {
    this.child.kill("SIGKILL");
    return this.ended;
  }
}

/// Notifications are handled beside the responses that come after them.
async function eventually(holds) {
  while (!holds()) await new Promise(resolve => setTimeout(resolve, 5));
}

const selected = optionId => ({ outcome: { outcome: "selected", optionId } });
const cases = [];
const test = (name, settings, run) => cases.push({ name, settings, run });

test("every method that is declared", "", async (place, capabilities) => {
  place.model.reply = () => "It is in March [Garden.md:3].";
  const editor = await new Editor(place, capabilities).start();
  assert.equal(editor.hello.protocolVersion, 1);
  const { loadSession, sessionCapabilities, promptCapabilities } = editor.hello.agentCapabilities;
  assert.ok(loadSession && promptCapabilities.embeddedContext);
  assert.deepEqual(Object.keys(sessionCapabilities).sort(), ["close", "delete", "list", "resume"]);
  await editor.agent.request(AGENT.authenticate, { methodId: editor.hello.authMethods[0].id });
  await editor.open(place);
  const { sessionId } = editor;
  assert.deepEqual(editor.session.configOptions.map(option => option.id), ["mode", "model"]);
  assert.equal(editor.session.modes.currentModeId, "ask");
  assert.equal((await editor.say("When do I prune?")).stopReason, "end_turn");
  assert.equal(editor.said(), "It is in March [Garden.md:3].");
  const commands = editor.of("available_commands_update")[0].availableCommands.map(command => command.name);
  assert.deepEqual(commands, ["plan", "undo", "macro", "tools", "compact", "continue"]);
  await editor.agent.request(AGENT.session.setMode, { sessionId, modeId: "read" });
  const set = { sessionId, configId: "model", value: "other" };
  const { configOptions } = await editor.agent.request(AGENT.session.setConfigOption, set);
  assert.deepEqual(configOptions.map(option => option.currentValue), ["read", "other"]);
  const { sessions } = await editor.agent.request(AGENT.session.list, { cwd: place.vault });
  assert.deepEqual(sessions.map(session => [session.sessionId, session.title]), [[sessionId, "When do I prune?"]]);
  assert.ok(Date.parse(sessions[0].updatedAt));
  await editor.agent.request(AGENT.session.close, { sessionId });
  await assert.rejects(editor.say("closed"), error => error.code === -32002);
  const saved = { sessionId, cwd: place.vault, mcpServers: [] };
  editor.updates.length = 0;
  await editor.agent.request(AGENT.session.load, saved);
  await eventually(() => editor.updates.length >= 2);
  const kinds = editor.updates.map(update => update.sessionUpdate).slice(0, 2);
  assert.deepEqual(kinds, ["user_message_chunk", "agent_message_chunk"]);
  await editor.agent.request(AGENT.session.resume, { sessionId, cwd: place.vault });
  assert.equal((await editor.say("Once more")).stopReason, "end_turn");
  assert.match(JSON.stringify(place.model.requests.at(-1).messages), /When do I prune/);
  await editor.agent.request(AGENT.session.delete, { sessionId });
  assert.deepEqual((await editor.agent.request(AGENT.session.list, {})).sessions, []);
  await editor.end();
});

test("a change, its diff and its question", "", async (place, capabilities) => {
  place.model.calls(APPEND);
  const editor = await (await new Editor(place, capabilities).start()).open(place);
  editor.choose = () => {
    assert.equal(place.read("Log.md"), "- begun\n");
    return selected("allow");
  };
  assert.equal((await editor.say("Add it")).stopReason, "end_turn");
  assert.equal(place.read("Log.md"), APPENDED);
  const [{ toolCall, options }] = editor.asked;
  const diff = toolCall.content.find(content => content.type === "diff");
  assert.deepEqual([diff.path, diff.oldText, diff.newText], [path.join(place.vault, "Log.md"), "- begun\n", APPENDED]);
  assert.deepEqual(toolCall.locations, [{ path: path.join(place.vault, "Log.md"), line: 2 }]);
  const forms = options.map(option => option.optionId).filter(id => ["edit", "reject_and_say"].includes(id));
  assert.equal(forms.length, capabilities.elicitation ? 2 : 0);
  const statuses = editor.of("tool_call_update").map(update => update.status).filter(Boolean);
  assert.deepEqual(statuses, ["pending", "in_progress", "completed"]);
  await editor.end();
});

test("a deny that the client answers with yes", 'denied_tools = ["append_to_note"]\n', async (place, capabilities) => {
  place.model.calls(APPEND);
  const editor = await (await new Editor(place, capabilities).start()).open(place);
  // It would answer by itself; what is denied is not even asked about.
  editor.choose = () => selected("allow_always");
  await editor.say("Add it");
  assert.deepEqual([place.read("Log.md"), editor.asked.length], ["- begun\n", 0]);
  assert.match(JSON.stringify(place.model.requests.at(-1).messages), /denied/i);
  await editor.end();
});

test("a form, where it is declared", "", async (place, capabilities) => {
  place.model.calls(APPEND);
  const editor = await (await new Editor(place, capabilities).start()).open(place);
  const choices = capabilities.elicitation ? ["edit", "allow"] : ["reject"];
  editor.choose = () => selected(choices.shift());
  editor.fill = params => {
    assert.equal(params.requestedSchema.properties.content.default, "- done");
    return { action: "accept", content: { path: "Log.md", content: "- edited" } };
  };
  await editor.say("Add it");
  assert.equal(place.read("Log.md"), capabilities.elicitation ? "- begun\n- edited\n" : "- begun\n");
  await editor.end();
});

test("the open note and the selection", "", async (place, capabilities) => {
  place.env.VAULT_AGENT_TOOLSETS = "actions";
  place.model.calls({ tool: "editor_replaceSelection", args: { text: "Prune them in April." } });
  const editor = await (await new Editor(place, capabilities).start()).open(place);
  editor.choose = () => selected("allow");
  const uri = `${pathToFileURL(path.join(place.vault, "Garden.md"))}#L3:3`;
  const prompt = [
    { type: "resource", resource: { uri, text: "Prune the roses in March.", mimeType: "text/markdown" } },
    { type: "text", text: "Say April." },
  ];
  await editor.agent.request(AGENT.session.prompt, { sessionId: editor.sessionId, prompt });
  assert.equal(place.read("Garden.md"), "# Garden\n\nPrune them in April.\n");
  await editor.end();
});

test("cancelled while the model thinks, and while a person does", "", async (place, capabilities) => {
  const editor = await (await new Editor(place, capabilities).start()).open(place);
  const asked = new Promise(resolve => (place.model.reply = () => void resolve()));
  const thinking = editor.say("Think");
  await asked;
  await editor.agent.notify(AGENT.session.cancel, { sessionId: editor.sessionId });
  assert.equal((await thinking).stopReason, "cancelled");
  place.model.calls(APPEND);
  const shown = new Promise(resolve => {
    editor.choose = (_, signal) => {
      resolve();
      return new Promise(answer => signal.addEventListener("abort", () => answer({ outcome: { outcome: "cancelled" } })));
    };
  });
  const deciding = editor.say("Add it");
  await shown;
  await editor.agent.notify(AGENT.session.cancel, { sessionId: editor.sessionId });
  assert.equal((await deciding).stopReason, "cancelled");
  assert.equal(place.read("Log.md"), "- begun\n");
  await editor.end();
});

test("a question that is open when the process dies, in a second one", "", async (place, capabilities) => {
  place.model.calls(APPEND);
  const first = await (await new Editor(place, capabilities).start()).open(place);
  const shown = new Promise(resolve => {
    first.choose = () => {
      resolve();
      return new Promise(() => {});
    };
  });
  first.say("Add it").catch(() => {});
  await shown;
  await first.kill();
  const second = await new Editor(place, capabilities).start();
  second.sessionId = first.sessionId;
  const { sessions } = await second.agent.request(AGENT.session.list, {});
  assert.equal(sessions[0].sessionId, first.sessionId);
  await second.agent.request(AGENT.session.load, { sessionId: first.sessionId, cwd: place.vault, mcpServers: [] });
  await eventually(() => second.of("tool_call").length === 1);
  assert.equal(second.of("tool_call")[0].name, "append_to_note");
  second.choose = () => selected("allow");
  assert.equal((await second.say("/continue")).stopReason, "end_turn");
  assert.deepEqual([place.read("Log.md"), second.asked.length], [APPENDED, 1]);
  assert.match(second.said(), /Done\./);
  await second.end();
});

test("a plan, its undoing, and a macro", "", async (place, capabilities) => {
  const steps = [{ id: "one", tool: "append_to_note", preview: "add a line", args: APPEND.args }];
  const plan = { version: "1.0", goal: "add a line", riskLevel: "writes", assumptions: [], steps };
  place.model.reply = () => JSON.stringify(plan);
  const editor = await (await new Editor(place, capabilities).start()).open(place);
  editor.choose = () => selected("allow");
  await editor.say("/plan add a line");
  assert.equal(place.read("Log.md"), APPENDED, editor.said());
  const entries = editor.of("plan").map(update => update.entries[0].status);
  assert.deepEqual([entries[0], entries.at(-1)], ["pending", "completed"]);
  await editor.say("/macro save add");
  await editor.say("/undo");
  assert.equal(place.read("Log.md"), "- begun\n", editor.said());
  const { length } = place.model.requests;
  await editor.say("/macro add");
  assert.deepEqual([place.read("Log.md"), place.model.requests.length], [APPENDED, length]);
  await editor.end();
});

let failures = 0;
for (const [era, capabilities] of Object.entries(ERAS)) {
  for (const { name, settings, run } of cases) {
    const place = new Place();
    const started = Date.now();
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no end after ${DEADLINE} ms`)), DEADLINE);
    });
    try {
      await place.prepare(settings);
      await Promise.race([run(place, capabilities), late]);
      console.log(`ok      ${era}: ${name} (${Date.now() - started} ms)`);
    } catch (error) {
      failures += 1;
      console.log(`FAILED  ${era}: ${name}\n${error.stack ?? JSON.stringify(error)}`);
    }
    clearTimeout(timer);
    place.remove();
  }
}
console.log(`${2 * cases.length - failures} of ${2 * cases.length} cases passed`);
process.exit(failures ? 1 : 0);
