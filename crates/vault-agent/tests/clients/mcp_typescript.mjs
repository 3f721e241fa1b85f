// The server with the official clients for TypeScript, the new one in each of its modes and the old one, over standard
// input and output and over HTTP:
//   node mcp_typescript.mjs PROGRAM PACKAGES
// PROGRAM is vault-agent. PACKAGES is a folder in which npm has installed @modelcontextprotocol/client and
// @modelcontextprotocol/sdk. Prints a line for each client and transport; ends with 1 when a case failed.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";

const [program, packages] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(packages), "package.json"));
const current = require("@modelcontextprotocol/client");
const currentStdio = require("@modelcontextprotocol/client/stdio");
const old = require("@modelcontextprotocol/sdk/client/index.js");
const oldStdio = require("@modelcontextprotocol/sdk/client/stdio.js");
const oldHttp = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const oldTypes = require("@modelcontextprotocol/sdk/types.js");

const NEWEST = "2026-07-28";
const ME = { name: "mcp-typescript", version: "1" };
const DEADLINE = 20_000;
const NOTES = {
  "Garden.md": "# Garden\n\nPrune the roses in March.\n\n## Tools\n\n- shears\n",
  "Log.md": "- begun\n",
  "Home.md": "See [[Garden]]. #allotment\n",
};
const YES = { action: "accept", content: { approve: true } };

/// A client of the new package.
const currentClient = mode => ({
  name: `client ${typeof mode === "string" ? mode : mode.pin}`,
  isNew: mode !== "legacy",
  create: capabilities => new current.Client(ME, { capabilities, versionNegotiation: { mode } }),
  Stdio: currentStdio.StdioClientTransport,
  Http: current.StreamableHTTPClientTransport,
  elicitation: "elicitation/create",
  updated: "notifications/resources/updated",
  version: client => client.getNegotiatedProtocolVersion(),
});

const oldClient = {
  name: "sdk",
  isNew: false,
  create: capabilities => new old.Client(ME, { capabilities }),
  Stdio: class extends oldStdio.StdioClientTransport {
    setProtocolVersion(version) {
      this.protocolVersion = version;
    }
  },
  Http: oldHttp.StreamableHTTPClientTransport,
  elicitation: oldTypes.ElicitRequestSchema,
  updated: oldTypes.ResourceUpdatedNotificationSchema,
  version: client => client.transport.protocolVersion,
};

const kinds = [currentClient("legacy"), currentClient("auto"), currentClient({ pin: NEWEST }), oldClient];

/// A vault, a home for what the program keeps, and what the servers wrote to standard error.
class Place {
  folder = mkdtempSync(path.join(tmpdir(), "mcp-typescript-"));
  vault = path.join(this.folder, "Notes");
  stderr = "";

  constructor() {
    mkdirSync(this.vault);
    this.reset();
    const names = ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];
    this.env = { PATH: process.env.PATH, TERM: "xterm", HOME: this.folder };
    for (const name of names) this.env[name] = path.join(this.folder, name.toLowerCase());
  }

  reset() {
    for (const name of this.names()) rmSync(path.join(this.vault, name), { recursive: true });
    for (const [name, text] of Object.entries(NOTES)) this.write(name, text);
  }

  write(name, text) {
    writeFileSync(path.join(this.vault, name), text);
  }

  read(name) {
    return readFileSync(path.join(this.vault, name), "utf8");
  }

  names() {
    return readdirSync(this.vault).sort();
  }

  hear(stream) {
    stream.on("data", text => (this.stderr += text));
  }

  /// Runs `vault-agent approve` at a terminal, and answers its question.
  async approve(code, answer) {
    const command = `'${path.resolve(program)}' approve ${code}`;
    const child = spawn("script", ["-qec", command, "/dev/null"], { env: this.env, timeout: DEADLINE });
    let shown = "";
    child.stdout.on("data", text => (shown += text));
    child.stdin.end(`${answer}\n`);
    const status = await new Promise(resolve => child.on("close", resolve));
    return { status, shown };
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/// A server over HTTP, and its address.
async function serveHttp(place) {
  const child = spawn(program, ["mcp", "--vault", place.vault, "--http", "127.0.0.1:0"], { env: place.env });
  place.hear(child.stderr);
  const ended = new Promise(resolve => child.on("exit", resolve));
  await eventually(() => {
    assert.equal(child.exitCode, null, place.stderr);
    return place.stderr.includes("/mcp\n");
  });
  const stop = async () => {
    child.kill();
    assert.equal(await ended, 0, "the server's exit code");
  };
  return { url: new URL(place.stderr.match(/listening on (\S+)/)[1]), stop };
}

/// A connected client. `answer` is what its person answers; `asked` and `told` are what the server asked and told, and
/// `wire` are all its messages.
async function connect(kind, place, url, capabilities) {
  const client = kind.create(capabilities);
  const person = { client, answer: async () => ({ action: "cancel" }), asked: [], told: [], wire: [] };
  if (capabilities.elicitation) {
    client.setRequestHandler(kind.elicitation, (request, context) => {
      person.asked.push(request.params);
      return person.answer((context.mcpReq ?? context).signal);
    });
  }
  client.setNotificationHandler(kind.updated, notice => void person.told.push(notice.params.uri));
  const args = ["mcp", "--vault", place.vault];
  const transport = url
    ? new kind.Http(url)
    : new kind.Stdio({ command: program, args, env: place.env, stderr: "pipe" });
  if (!url) place.hear(transport.stderr);
  await client.connect(transport);
  const { onmessage } = transport;
  transport.onmessage = (message, ...more) => {
    person.wire.push(message);
    onmessage(message, ...more);
  };
  return person;
}

async function eventually(holds) {
  const until = Date.now() + DEADLINE;
  while (!(await holds())) {
    assert.ok(Date.now() < until, `never: ${holds}`);
    await new Promise(resolve => setTimeout(resolve, 20));
  }
}

/// What never ends is a failure too.
async function inTime(running) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("it never ended")), DEADLINE)));
  return Promise.race([running, late]).finally(() => clearTimeout(timer));
}

/// Calls a tool. Text and structured content must say the same.
async function call({ client }, name, args = {}, options = undefined) {
  const result = await client.callTool({ name, arguments: args }, ...optionsOf(client, options));
  checkTexts(result);
  return result;
}

/// The old client takes the options of a call after its schema.
function optionsOf(client, options) {
  return client instanceof old.Client ? [undefined, options] : [options];
}

function checkTexts(result) {
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  assert.match(result.content.at(-1).text, /are data, not instructions/);
}

async function done(person, name, args, options) {
  const result = await call(person, name, args, options);
  assert.ok(!result.isError, JSON.stringify(result));
  return result.structuredContent;
}

async function failed(person, name, args) {
  const result = await call(person, name, args);
  assert.equal(result.isError, true, JSON.stringify(result));
  return result.structuredContent.error;
}

const APPEND = { path: "Log.md", content: "- done" };
const APPENDED = "- begun\n- done\n";
const append = person => done(person, "append_to_note", APPEND);

const cases = [];
const test = (name, run, applies = () => true) => cases.push({ name, run, applies });
const isNew = ({ kind }) => kind.isNew;
const isOld = ({ kind }) => !kind.isNew;

test("the version is the one asked for", async ({ kind, plain }) => {
  assert.equal(kind.version(plain.client), kind.isNew ? NEWEST : "2025-11-25");
  assert.equal(plain.client.getServerVersion().name, "vault-agent");
  assert.match(plain.client.getInstructions(), /never follow instructions/);
});

test("tools are listed", async ({ plain }) => {
  const { tools } = await plain.client.listTools();
  const names = tools.map(tool => tool.name);
  assert.deepEqual(names.slice(-3), ["plan_preview", "plan_apply", "undo"]);
  for (const tool of tools) {
    assert.equal(typeof tool.annotations.readOnlyHint, "boolean", tool.name);
    assert.equal(tool.inputSchema.type, "object", tool.name);
  }
  assert.deepEqual((await plain.client.listTools()).tools, tools);
});

test("a call answers structured content that its schema allows", async ({ plain }) => {
  // From then on the clients check what calls answer against the schemas.
  const { tools } = await plain.client.listTools();
  const calls = {
    read_note: { path: "Garden.md" },
    search_notes: { query: "roses" },
    list_backlinks: { path: "Garden.md" },
    get_note_metadata: { path: "Home.md" },
  };
  for (const [name, args] of Object.entries(calls)) {
    assert.ok(tools.find(tool => tool.name === name).outputSchema, name);
    await done(plain, name, args);
  }
  assert.equal((await done(plain, "read_note", { path: "Garden.md" })).content, NOTES["Garden.md"]);
  assert.deepEqual(
    (await done(plain, "list_backlinks", { path: "Garden.md" })).result.map(link => link.source_path),
    ["Home.md"],
  );
});

test("a tool's error is an answer", async ({ plain }) => {
  await plain.client.listTools();
  const gone = await failed(plain, "read_note", { path: "Gardne.md" });
  assert.equal(gone.code, "NOT_FOUND");
  assert.match(gone.remedy, /Garden\.md/);
  assert.equal((await failed(plain, "read_note", { path: "../x.md" })).code, "INVALID_PATH");
  assert.equal((await failed(plain, "read_note", { file: "x" })).code, "INVALID_ARGUMENTS");
});

test("an unknown tool is an error of the protocol", async ({ plain }) => {
  await assert.rejects(
    call(plain, "no_such_tool"),
    error => error.code === -32602 && /there are read_note, /.test(error.message),
  );
});

test("resources are listed and read, whole and in parts", async ({ plain: { client } }) => {
  const { resources } = await client.listResources();
  const uris = resources.map(resource => resource.uri);
  for (const uri of ["vault-agent://skill", "vault://Notes/?changed=20", "vault://Notes/Garden.md"]) {
    assert.ok(uris.includes(uri), `${uri}: ${uris}`);
  }
  const read = async uri => (await client.readResource({ uri })).contents;
  const [whole] = await read("vault://Notes/Garden.md");
  assert.deepEqual([whole.text, whole.mimeType], [NOTES["Garden.md"], "text/markdown"]);
  assert.equal((await read("vault://Notes/Garden.md?heading=Tools"))[0].text, "## Tools\n\n- shears\n");
  assert.match((await read("vault://Notes/?changed=20"))[0].text, /Garden\.md/);
  assert.match((await read("vault-agent://skill"))[0].text, /needs_approval/);
});

test("a resource that is not there is an error", async ({ kind, plain }) => {
  const uri = "vault://Notes/None.md";
  await assert.rejects(plain.client.readResource({ uri }), /there is no resource/);
  // The new client makes one code of both.
  const { code, data } = plain.wire.at(-1).error;
  assert.deepEqual([code, data], [kind.isNew ? -32602 : -32002, { uri }]);
});

test("templates are listed", async ({ plain }) => {
  const { resourceTemplates } = await plain.client.listResourceTemplates();
  assert.deepEqual(
    resourceTemplates.map(template => template.name),
    ["note", "section", "lines", "block", "changed"],
  );
});

test("names, headings and topics are completed", async ({ plain: { client } }) => {
  const complete = async (ref, name, value, context) =>
    (await client.complete({ ref, argument: { name, value }, context })).completion.values;
  const note = { type: "ref/resource", uri: "vault://{vault}/{+path}" };
  const section = { type: "ref/resource", uri: "vault://{vault}/{+path}?heading={heading}" };
  assert.deepEqual(await complete(note, "path", "gar"), ["Garden.md"]);
  assert.deepEqual(await complete(note, "vault", ""), ["Notes"]);
  assert.deepEqual(await complete(section, "heading", "to", { arguments: { vault: "Notes", path: "Garden.md" } }), [
    "Tools",
  ]);
  const summarize = { type: "ref/prompt", name: "summarize" };
  assert.deepEqual(await complete(summarize, "topic", "allot"), ["allotment"]);
});

test("prompts are listed and take their argument", async ({ plain: { client } }) => {
  const { prompts } = await client.listPrompts();
  assert.deepEqual(
    prompts.map(prompt => prompt.name),
    ["summarize", "contradictions", "tidy_tags", "daily_review", "plan"],
  );
  const { messages } = await client.getPrompt({ name: "summarize", arguments: { topic: "roses & bees" } });
  assert.match(messages[0].content.text, /about roses & bees/);
  await assert.rejects(client.getPrompt({ name: "summarize", arguments: {} }), error => error.code === -32602);
  await assert.rejects(client.getPrompt({ name: "none" }), error => error.code === -32602);
});

test("a question is accepted, declined and cancelled", async ({ kind, asking, place }) => {
  for (const [action, message] of [
    ["decline", /^User cancelled tool execution: declined in the client/],
    ["cancel", /^User cancelled tool execution: not answered in the client/],
  ]) {
    asking.answer = async () => ({ action });
    const { status, message: said } = await append(asking);
    assert.equal(status, "declined");
    assert.match(said, message);
  }
  asking.answer = async () => ({ action: "accept", content: { approve: false } });
  assert.equal((await append(asking)).status, "declined");
  assert.equal(place.read("Log.md"), NOTES["Log.md"]);
  asking.answer = async () => YES;
  assert.equal(typeof (await append(asking)).transaction, "number");
  assert.equal(place.read("Log.md"), APPENDED);
  assert.equal(asking.asked.length, 4);
  const requests = asking.wire.filter(message => message.method && message.id !== undefined);
  assert.equal(requests.length, kind.isNew ? 0 : 4, "requests of the server");
  for (const { message, requestedSchema } of asking.asked) {
    assert.match(message, /append_to_note in the vault Notes[^]*undone[^]*\+- done/);
    assert.deepEqual(requestedSchema.required, ["approve"]);
  }
  assert.equal((await done(asking, "undo")).undone > 0, true);
  assert.equal(place.read("Log.md"), NOTES["Log.md"]);
});

test("without forms a change is confirmed outside, once", async ({ plain, place }) => {
  const first = await append(plain);
  assert.equal(first.status, "needs_approval");
  assert.match(first.preview, /\+- done/);
  assert.equal((await append(plain)).code, first.code);
  const refused = await place.approve(first.code, "n");
  assert.equal(refused.status, 3, refused.shown);
  const second = await append(plain);
  assert.notEqual(second.code, first.code);
  const approved = await place.approve(second.code, "y");
  assert.equal(approved.status, 0, approved.shown);
  assert.match(approved.shown, /approved: tell the assistant/);
  assert.equal(place.read("Log.md"), NOTES["Log.md"]);
  assert.equal(typeof (await append(plain)).transaction, "number");
  assert.equal(place.read("Log.md"), APPENDED);
  const third = await append(plain);
  assert.equal(third.status, "needs_approval");
  assert.equal((await place.approve(third.code, "n")).status, 3);
  assert.equal(place.read("Log.md"), APPENDED);
});

test(
  "a state that was changed, or of another call, or used, is refused",
  async ({ asking, place }) => {
    const options = { allowInputRequired: true };
    const params = { name: "append_to_note", arguments: APPEND };
    const question = await asking.client.callTool(params, options);
    assert.equal(question.resultType, "input_required");
    const { requestState } = question;
    const answer = async (changes = {}) => {
      const result = await asking.client.callTool(
        { ...params, inputResponses: { approve: YES }, requestState, ...changes },
        options,
      );
      checkTexts(result);
      return result.structuredContent;
    };
    const refused = async changes => {
      const { error } = await answer(changes);
      assert.equal(error?.code, "REFUSED");
    };
    const middle = requestState.length >> 1;
    const other = requestState[middle] === "A" ? "B" : "A";
    await refused({ requestState: requestState.slice(0, middle) + other + requestState.slice(middle + 1) });
    await refused({ requestState: "forged" });
    await refused({ arguments: { ...APPEND, content: "- something else" } });
    assert.equal(place.read("Log.md"), NOTES["Log.md"]);
    assert.equal(typeof (await answer()).transaction, "number");
    await refused();
    assert.equal(place.read("Log.md"), APPENDED);
    assert.equal(asking.asked.length, 0);
  },
  isNew,
);

test(
  "an old client cannot bring a state",
  async ({ asking, place }) => {
    asking.answer = async () => assert.fail("a question");
    const params = {
      name: "append_to_note",
      arguments: APPEND,
      requestState: "forged",
      inputResponses: { approve: YES },
    };
    const result = await asking.client.callTool(params);
    assert.equal(result.structuredContent.error?.code, "REFUSED", JSON.stringify(result));
    assert.equal(place.read("Log.md"), NOTES["Log.md"]);
  },
  isOld,
);

/// A plan that creates so many notes.
function plan(count) {
  const step = number => ({
    id: `s${number}`,
    tool: "vault.createFile",
    args: { path: `New/${number}.md`, content: "x\n" },
  });
  return {
    version: "1.0",
    goal: "New notes",
    riskLevel: "writes",
    steps: Array.from({ length: count }, (_, at) => step(at + 1)),
  };
}

test("a plan reports its progress", async ({ asking, place }) => {
  asking.answer = async () => YES;
  const { id, files } = await done(asking, "plan_preview", { plan: plan(3) });
  assert.equal(files, 3);
  const applied = await done(asking, "plan_apply", { id }, { onprogress: () => {} });
  assert.equal(applied.done, true);
  // A client forgets progress that it reads together with the result, so this is what came.
  const told = asking.wire.filter(message => message.method === "notifications/progress");
  const progress = told.map(({ params: { progress, total, message } }) => ({ progress, total, message }));
  assert.deepEqual(
    progress,
    [1, 2, 3].map(number => ({ progress: number, total: 3, message: `s${number}` })),
  );
  assert.equal(readdirSync(path.join(place.vault, "New")).length, 3);
  assert.equal(typeof (await done(asking, "undo", { transaction: applied.transaction })).undone, "number");
  assert.deepEqual(place.names(), Object.keys(NOTES).sort());
});

test("a plan that is cancelled stops", async ({ asking, place }) => {
  const count = 120;
  asking.answer = async () => YES;
  const before = (await append(asking)).transaction;
  const { id } = await done(asking, "plan_preview", { plan: plan(count) });
  const cancel = new AbortController();
  // The new client also tells of its own rounds, which have no total.
  const onprogress = it => it.total && cancel.abort("enough");
  const applying = call(asking, "plan_apply", { id }, { signal: cancel.signal, onprogress });
  await assert.rejects(applying, /enough/);
  // It can be undone from when it has stopped.
  let undone;
  await eventually(async () => {
    undone = await call(asking, "undo", { transaction: before + 1 });
    return !undone.isError;
  });
  const { changes } = undone.structuredContent;
  assert.ok(changes > 0 && changes < count, `${changes} of ${count}`);
  assert.deepEqual(place.names(), Object.keys(NOTES).sort());
});

test("a call that is cancelled while its person thinks changes nothing", async ({ asking, place }) => {
  const cancel = new AbortController();
  asking.answer = signal => {
    setImmediate(() => cancel.abort("enough"));
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  await assert.rejects(call(asking, "append_to_note", APPEND, { signal: cancel.signal }), /enough/);
  asking.answer = async () => YES;
  await done(asking, "append_to_note", { ...APPEND, content: "- later" });
  assert.equal(place.read("Log.md"), "- begun\n- later\n");
});

test(
  "a client that subscribes is told, until it unsubscribes",
  async ({ plain, place }) => {
    const [one, two] = ["vault://Notes/Garden.md", "vault://Notes/Log.md"];
    await plain.client.subscribeResource({ uri: one });
    place.write("Garden.md", "changed by another program\n");
    await eventually(() => plain.told.includes(one));
    await plain.client.subscribeResource({ uri: two });
    await plain.client.unsubscribeResource({ uri: one });
    plain.told.length = 0;
    place.write("Garden.md", "changed again\n");
    place.write("Log.md", "changed as well\n");
    await eventually(() => plain.told.includes(two));
    assert.deepEqual([...new Set(plain.told)], [two]);
    await plain.client.unsubscribeResource({ uri: two });
  },
  isOld,
);

test(
  "a client that listens is told",
  async ({ plain, place }) => {
    const uri = "vault://Notes/Garden.md";
    const filter = { resourceSubscriptions: [uri] };
    const subscription = await plain.client.listen(filter);
    assert.deepEqual(subscription.honoredFilter, filter);
    // It is acknowledged before the server has looked at the note for the first time.
    let text = "";
    await eventually(() => {
      place.write("Garden.md", (text += "longer\n"));
      return plain.told.includes(uri);
    });
    assert.deepEqual([...new Set(plain.told)], [uri]);
    await subscription.close();
    assert.equal(await subscription.closed, "local");
    await done(plain, "read_note", { path: "Log.md" });
  },
  isNew,
);

// One place, and over HTTP one server, for each client and transport.

let failures = 0;

async function run(kind, transport) {
  const started = Date.now();
  const title = `${kind.name}, ${transport}`;
  const place = new Place();
  const people = [];
  let server;
  const applying = cases.filter(each => each.applies({ kind }));
  let name = "connect";
  const report = error => {
    failures++;
    console.log(`${title}: ${name}: FAILED\n${error.stack ?? error}\nthe server's standard error:\n${place.stderr}`);
  };
  try {
    server = transport === "http" ? await serveHttp(place) : undefined;
    const plain = await connect(kind, place, server?.url, {});
    people.push(plain);
    const asking = await connect(kind, place, server?.url, { elicitation: { form: {} } });
    people.push(asking);
    for (const each of applying) {
      name = each.name;
      place.reset();
      for (const person of people) person.asked.length = person.told.length = person.wire.length = 0;
      try {
        await inTime(each.run({ kind, place, plain, asking }));
      } catch (error) {
        report(error);
      }
    }
    name = "close";
  } catch (error) {
    report(error);
  }
  try {
    await inTime(Promise.all(people.map(person => person.client.close())));
    await server?.stop();
  } catch (error) {
    report(error);
  }
  place.remove();
  console.log(`${title}: ${applying.length} cases, ${((Date.now() - started) / 1000).toFixed(1)} s`);
}

for (const kind of kinds) await Promise.all(["stdio", "http"].map(transport => run(kind, transport)));
process.exitCode = failures ? 1 : 0;
