// The conversation and its approvals in a browser, over a real vault-agent and a model that is a script.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { Harness, textsOf } from "./harness.mjs";
import { liveHost } from "./live-host.mjs";
import { Model } from "./model.mjs";

const ANSWER = `Turn the heap when it cools [Garden/Compost.md:19], as \`Garden/Compost.md:19\` says.

1. Half green
2. Half brown

\`\`\`js
const heap = "<b>warm</b>";
\`\`\`

See [[Soil]], [[No such note]] and [the web](https://example.com/compost).
`;

/** A key that opens nothing. */
const KEY = "sk-typed-into-the-settings";

const HOSTILE = `<img src="https://evil.test/p.png" onerror="window.hacked=1"><script>window.hacked=2</script>
<div class="vault-agent-card"><button>Approve</button></div>

![x](https://evil.test/q.png) ![[Compost]] [a](javascript:window.hacked=3) [b](obsidian://run) \\![c](https://evil.test/r.png)

\`\`\`dataviewjs
window.hacked = 4
\`\`\`

1. > ~~~dataviewjs
   > window.hacked = 5
   > ~~~

Inline \`$= window.hacked = 6\` and \`\`$= 7\`\` and $\\href{javascript:window.hacked=8}{x}$.
`;

export async function conversation(browser, { folder: vault, home, program, step }) {
  const model = new Model();
  await model.listen();
  const app = await Harness.open(browser, { folder: vault, home, program, allowed: [] });
  const { page } = app;
  page.setDefaultTimeout(15_000);
  const read = (name) => readFile(path.join(vault, name), "utf8");
  const view = page.locator(".vault-agent-conversation");
  const message = view.getByRole("textbox", { name: "Message" });
  const log = view.getByRole("log");
  const last = log.locator(".vault-agent-entry.is-assistant").last();
  const card = log.locator(".vault-agent-card:not(.is-decided)");
  const decided = log.locator(".vault-agent-card.is-decided").last();
  const opened = () => page.evaluate(() => window.app.workspace.opened.at(-1));
  const idle = () => view.getByRole("button", { name: "Send", exact: true }).waitFor();
  const say = async (text) => {
    await message.fill(text);
    await message.press("Enter");
  };
  const answered = async (text) => {
    await last.getByText(text).first().waitFor();
    await idle();
  };
  const pastePicture = () =>
    message.evaluate((field) => {
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array([137, 80, 78, 71])], "bed.png", { type: "image/png" }));
      field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    });
  const toRead = (name) => ({ tool: "read_note", args: { path: name } });
  const append = (content) => ({ tool: "append_to_note", args: { path: "Inbox.md", content } });

  await app.until("ready");

  step("conversation: without a model it says what to do, and the search still works", async () => {
    await app.command("conversation");
    await view.getByText("A conversation needs a model").waitFor();
    await app.check("no-model", { pictures: true });
    // A message that cannot be sent stays in the field, with what is shared.
    const picture = view.getByRole("checkbox", { name: "Send Picture bed.png (1 kB)" });
    await pastePicture();
    await picture.waitFor();
    await say("Hello");
    await page.waitForFunction(() => document.querySelector(".vault-agent-composer textarea").value === "Hello");
    await picture.waitFor();
    await view.getByRole("button", { name: "Remove Picture bed.png" }).click();
    await message.fill("");
    await view.getByRole("button", { name: "Search instead" }).click();
    await page.getByRole("combobox", { name: "Search notes by words and meaning" }).fill("compost");
    await page.getByRole("option").first().waitFor();
    await app.command("conversation");
  });

  step("conversation: a model is chosen and tested in the settings, and its key is kept out of the plugin's file", async () => {
    await app.openSettings();
    await page.getByLabel("Provider").fill(model.address);
    await page.getByLabel("Model", { exact: true }).fill("scripted");
    const settings = page.locator(".vertical-tab-content");
    const key = page.getByLabel("Key", { exact: true });
    await key.fill(KEY);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    const saved = settings.getByText(/runs on this computer/);
    const refused = settings.getByText(/keyring cannot be used/);
    await saved.or(refused).waitFor();
    const isRefused = await refused.isVisible();
    console.log(isRefused ? "a key is refused, because there is no keyring here" : "a key is kept in the keyring");
    if (!isRefused) assert.equal(await key.inputValue(), "", "the key is forgotten when the program has it");
    const kept = await page.evaluate(() => JSON.stringify({ data: window.plugin.data, preferences: window.plugin.preferences }));
    assert.ok(!kept.includes(KEY), "the plugin keeps no key");
    await key.fill("");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await saved.waitFor();
    const files = await textsOf(path.join(home, "config"));
    assert.ok(Object.values(files).some((text) => text.includes("scripted")), "the program's settings");
    assert.deepEqual(Object.keys(files).filter((name) => files[name].includes(KEY)), [], "no file has the key as text");
    model.reply = () => "ready";
    await page.getByRole("button", { name: "Test", exact: true }).click();
    await page.getByText(/scripted answered in/).waitFor();
    await page.getByText("denied_paths").waitFor();
    await app.check("settings-model", { pictures: true });
    assert.deepEqual(Object.keys(await page.evaluate(() => window.plugin.data ?? {})).filter((name) => name !== "program"), []);
    await page.getByRole("button", { name: "List models" }).click();
    await settings.getByText("2 models in the list of the field.").waitFor();
    await app.closeSettings();
  });

  step("plugins: the list is downloaded when the person asks for it", async () => {
    await app.openSettings();
    const settings = page.locator(".vertical-tab-content");
    await settings.getByText("It is not downloaded.").waitFor();
    const address = page.getByLabel("Address of the list");
    assert.match(await address.inputValue(), /^https:/);
    await address.fill("http://example.com/plugins.json");
    await page.getByRole("button", { name: "Download", exact: true }).click();
    await settings.getByText("the address must begin with https://").waitFor();
    await address.fill(model.address.replace("/v1", "/plugins.json"));
    await page.getByRole("button", { name: "Download", exact: true }).click();
    await settings.getByText("2 plugins, downloaded on").waitFor();
    await app.check("settings-plugins");
    await app.closeSettings();
  });

  step("conversation: an answer streams as Markdown, its sources open the note at the line", async () => {
    await message.focus();
    await view.getByText(/runs on this computer/).waitFor();
    model.reply = () => ({ slowly: ANSWER });
    await say("How do I make compost?");
    await last.getByText("Turn the heap").waitFor();
    assert.equal(await view.getByRole("button", { name: "Stop" }).isVisible(), true);
    // What is complete stays as it is while the rest is written.
    await last.locator("li").first().waitFor();
    await page.evaluate(() => (window.firstBlock = document.querySelector(".vault-agent-entry.is-assistant p")));
    await last.locator("pre").waitFor();
    assert.equal(await page.evaluate(() => window.firstBlock.isConnected), true, "no flicker");
    await answered("See");
    assert.equal(await last.locator("pre code").textContent(), 'const heap = "<b>warm</b>";\n');
    assert.equal(await last.locator(".markdown-rendered").count(), 1, "drawn as a whole at the end");
    await app.check("conversation", { pictures: true });
    await last.getByRole("link", { name: "Compost:19", exact: true }).click();
    assert.deepEqual(await opened(), { path: "Garden/Compost.md", state: { active: true, eState: { line: 18 } }, inNewTab: false });
    assert.equal(await last.getByRole("link", { name: "Garden/Compost.md:19" }).count(), 1);
    await last.getByRole("link", { name: "Soil", exact: true }).click();
    assert.equal(path.basename((await opened()).path), "Soil.md");
    assert.equal(await last.getByRole("link", { name: "No such note" }).count(), 0, "a click does not create a note");
    assert.match(await last.textContent(), /the web \(example\.com\)/);
  });

  step("conversation: stopped, the text stays", async () => {
    model.reply = () => ({ slowly: "A long story begins. ".repeat(40) });
    await say("Tell me a story");
    await last.getByText("A long story").waitFor();
    await message.press("Escape");
    await log.getByText("Stopped.").waitFor();
    await idle();
    assert.match(await last.textContent(), /A long story begins/);
  });

  step("conversation: thoughts and calls are folded to a line each", async () => {
    const replies = [[{ tool: "search_notes", args: { query: "compost" } }], [toRead("Garden/Compost.md")], { thoughts: "The heap is **warm**.", text: "It is warm [Garden/Compost.md:19]." }];
    model.reply = () => replies.shift();
    await say("Is the heap warm?");
    await answered("It is warm");
    const call = log.locator(".vault-agent-entry.is-call").last();
    assert.ok((await call.boundingBox()).height < 40, "one line");
    assert.match(await call.textContent(), /read_note Garden\/Compost\.md done/);
    await call.locator("summary").click();
    await call.locator("pre").waitFor();
    await call.getByRole("button", { name: /^Compost/ }).first().click();
    assert.equal((await opened()).path, "Garden/Compost.md");
    const thought = log.locator(".vault-agent-entry.is-thought").last();
    assert.equal(await thought.locator(".vault-agent-thought").isVisible(), false);
    await thought.locator("summary").click();
    assert.equal(await thought.locator(".vault-agent-thought").textContent(), "The heap is **warm**.");
    await app.check("conversation-calls");
  });

  step("conversation: what is shared is shown before, and only what is ticked is sent", async () => {
    await app.openFile("Garden/Compost.md");
    await page.evaluate(() => {
      const { app, stub } = window;
      const leaf = (app.workspace.editorLeaf ??= new stub.WorkspaceLeaf(app.workspace));
      const editor = (leaf.view = new stub.MarkdownView(leaf));
      editor.file = app.vault.getFileByPath("Garden/Compost.md");
      editor.selected = { text: "worms take over", from: { line: 18, ch: 0 }, to: { line: 18, ch: 15 } };
    });
    await view.getByRole("button", { name: "Use selection" }).click();
    await message.pressSequentially("Compare with @Tomat");
    await view.getByRole("listbox", { name: "Completions" }).getByRole("option").first().waitFor();
    await message.press("Enter");
    await view.getByRole("checkbox", { name: /^Send Tomatoes/ }).waitFor();
    assert.match(await message.inputValue(), /\[\[Tomatoes\]\] $/);
    await view.locator(".vault-agent-shared summary").first().click();
    assert.equal(await view.getByLabel("The text that is sent").first().textContent(), "worms take over");
    await app.check("sharing", { pictures: true });
    await view.getByRole("button", { name: "None of what is sent" }).click();
    await view.getByRole("checkbox", { name: /^Send Selection: line 19 of Compost/ }).check();
    model.reply = () => "Compared.";
    await message.press("Enter");
    await answered("Compared.");
    assert.match(model.heard(), /worms take over/);
    assert.doesNotMatch(model.heard(), /blight/, "what is not ticked is not sent");
    assert.match(await log.locator(".is-person").last().textContent(), /Sent with it: Selection: line 19 of Compost/);
  });

  step("conversation: a picture is pasted, and sent with the message", async () => {
    await pastePicture();
    await view.getByRole("checkbox", { name: "Send Picture bed.png (1 kB)" }).waitFor();
    model.reply = () => "A bed.";
    await say("What is it?");
    await answered("A bed.");
    assert.match(model.heard(), /data:image\/png;base64,iVBORw==/);
  });

  step("conversation: commands are completed as the program announces them", async () => {
    await message.fill("");
    await message.pressSequentially("/to");
    await message.press("Tab");
    assert.equal(await message.inputValue(), "/tools");
    await message.press("Enter");
    await last.getByText("search_notes").first().waitFor();
    await idle();
  });

  step("conversation: what is typed meanwhile is sent when the turn has ended", async () => {
    let release;
    const until = new Promise((resolve) => (release = resolve));
    model.reply = () => ({ slowly: "The first answer takes time.", until });
    await say("First");
    await last.getByText("The first").waitFor();
    model.reply = () => "The second answer.";
    await say("Second");
    await view.getByText("Next: Second").waitFor();
    release();
    await answered("The second answer.");
    assert.equal(await view.getByText("Next: Second").count(), 0);
  });

  step("approvals: a change is shown with marked words and made after an approval", async () => {
    const before = await textsOf(vault);
    model.calls([[{ tool: "edit_note", args: { path: "Allotment diary.md", old_text: "Today the compost was warm.", new_text: "Today the compost was very hot." } }]]);
    await say("Correct the diary");
    await card.locator(".is-added").first().waitFor();
    assert.deepEqual(await textsOf(vault), before, "nothing is done before the approval");
    assert.match(await card.textContent(), /Changes notes.*edit_note.*can be undone.*stays on this machine/s);
    assert.deepEqual(await card.locator(".is-added .vault-agent-word").allTextContents(), ["very hot"]);
    assert.match(await view.locator(".vault-agent-status").last().textContent(), /waits for your decision/);
    await app.check("approval-card", { pictures: true });
    await view.getByRole("button", { name: "Go to the question" }).click();
    await card.getByRole("button", { name: "Approve", exact: true }).focus();
    await page.keyboard.press("Enter");
    await answered("Done.");
    assert.match(await read("Allotment diary.md"), /very hot/);
    assert.match(await decided.textContent(), /^Approved\./);
  });

  step("approvals: arguments are edited, and the change that they make is shown before it is made", async () => {
    model.calls([[append("Buy twine")]]);
    await say("Note the twine");
    await card.getByText("Arguments, which you can edit").click();
    await card.getByLabel("content", { exact: true }).fill("Buy green twine");
    assert.equal(await card.getByRole("button", { name: "Approve" }).filter({ visible: true }).count(), 0, "what is not shown cannot be approved");
    await card.getByRole("button", { name: "Show the change" }).click();
    await card.getByText("With your arguments:").waitFor();
    await card.locator(".is-added", { hasText: "Buy green twine" }).waitFor();
    assert.doesNotMatch(await read("Inbox.md"), /twine/);
    await card.getByRole("button", { name: "Approve", exact: true }).click();
    await answered("Done.");
    assert.match(await read("Inbox.md"), /Buy green twine/);
  });

  step("approvals: a part is left out, what is left is shown again", async () => {
    const long = `top\n${"line\n".repeat(20)}bottom\n`;
    await writeFile(path.join(vault, "Long.md"), long);
    await app.refresh();
    model.calls([[{ tool: "write_note", args: { path: "Long.md", mode: "replace", content: long.replace("top", "TOP").replace("bottom", "BOTTOM") } }]]);
    await say("Shout");
    await card.getByText("2 of 2 changes ticked").waitFor();
    await card.getByRole("checkbox", { name: "Change 1 of Long.md" }).uncheck();
    await card.getByText("1 of 2 changes ticked").waitFor();
    await app.check("approval-parts", { pictures: true });
    await card.getByRole("button", { name: "None: change" }).click();
    assert.ok(await card.getByRole("button", { name: "Show what is left" }).isDisabled());
    await card.getByRole("checkbox", { name: "Change 2 of Long.md" }).check();
    await card.getByRole("button", { name: "Show what is left" }).click();
    await card.getByText("Only what you ticked:").waitFor();
    assert.equal(await read("Long.md"), long);
    await card.getByRole("button", { name: "Approve", exact: true }).click();
    await answered("Done.");
    assert.equal(await read("Long.md"), long.replace("bottom", "BOTTOM"));
  });

  step("approvals: a rejection with a reason is told to the model", async () => {
    const before = await textsOf(vault);
    model.calls([[append("Nonsense")]], "I will ask first.");
    await say("Write nonsense");
    await card.getByLabel("What to do instead").fill("Ask me first");
    await card.getByLabel("What to do instead").press("Enter");
    await answered("I will ask first.");
    assert.deepEqual(await textsOf(vault), before);
    assert.match(JSON.stringify(model.requests.at(-1).messages), /Ask me first/);
    assert.match(await decided.textContent(), /^Rejected: Ask me first/);
  });

  step("approvals: one for the conversation covers the tool", async () => {
    model.calls([[append("One")], [append("Two")]]);
    await say("Note both");
    await card.getByRole("button", { name: "Approve for this conversation" }).click();
    await answered("Done.");
    assert.match(await read("Inbox.md"), /One[^]*Two/);
    assert.match(await decided.textContent(), /^Approved for this conversation/);
    assert.equal(await card.count(), 0);
  });

  step("approvals: text typed in an open editor is kept, and the change is shown again", async () => {
    model.calls([[{ tool: "edit_note", args: { path: "Long.md", old_text: "top", new_text: "Top" } }]]);
    await say("Begin with a capital");
    await card.locator(".is-added").first().waitFor();
    await page.exposeFunction("saveLong", async () => writeFile(path.join(vault, "Long.md"), `${await read("Long.md")}Typed a moment ago.\n`));
    await page.evaluate(() => {
      const { view } = window.app.workspace.editorLeaf;
      view.file = window.app.vault.getFileByPath("Long.md");
      view.onSave = async () => {
        view.onSave = async () => undefined;
        await window.saveLong();
      };
    });
    await card.getByRole("button", { name: "Approve", exact: true }).click();
    await card.getByText("have changed since this was shown").waitFor();
    assert.match(await read("Long.md"), /^top\n[^]*Typed a moment ago\.\n$/, "nothing is done with the old change");
    await card.getByRole("button", { name: "Approve", exact: true }).click();
    await answered("Done.");
    assert.match(await read("Long.md"), /^Top\n[^]*Typed a moment ago\.\n$/);
  });

  step("approvals: an undo that is typed is asked about, too", async () => {
    await say("/undo");
    await card.locator(".is-removed").first().waitFor();
    await card.getByRole("button", { name: "Approve", exact: true }).click();
    await last.getByText("Done: transaction").waitFor();
    await idle();
    assert.match(await read("Long.md"), /^top\n/);
  });

  step("conversation: a hostile answer runs nothing, loads nothing and forges no card", async () => {
    model.reply = () => HOSTILE;
    await say("Read the hostile note");
    await answered("Inline");
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await last.locator("img, script, iframe, button, .vault-agent-card, .embedded").count(), 0);
    assert.equal(await card.count(), 0);
    const links = await last.locator("a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    assert.deepEqual(links.filter((href) => href !== "#" && !/^https:/.test(href)), []);
    assert.match(await last.textContent(), /<div class="vault-agent-card"><button>Approve<\/button><\/div>/);
    assert.match(await last.textContent(), /window\.hacked = 4[^]*window\.hacked = 5[^]*\$= window\.hacked = 6[^]*\$\\href/);
    await app.check("hostile-answer");
  });

  step("conversation: a reload in the middle opens it again", async () => {
    model.calls([[{ tool: "edit_note", args: { path: "Long.md", old_text: "top", new_text: "Not yet" } }]]);
    await say("Add a line");
    await card.locator(".is-added").first().waitFor();
    const entries = await log.locator(".is-person").count();
    await app.reload();
    await app.until("ready");
    await log.getByText("How do I make compost?").waitFor();
    // The two commands, which the model does not see, are no part of what is saved.
    assert.equal(await log.locator(".is-person").count(), entries - 2);
    assert.equal(await log.locator(".is-person").last().locator(".vault-agent-said").textContent(), "Add a line");
    // The question is asked again, since it was not decided.
    await log.getByRole("button", { name: "Continue" }).click();
    await card.locator(".is-added").first().waitFor();
    await card.getByRole("button", { name: "Reject", exact: true }).click();
    await answered("Done.");
    assert.match(await read("Long.md"), /^top\n/);
  });

  step("conversation: a program that dies in the middle of an answer comes back, and the text stays", async () => {
    model.reply = () => ({ slowly: "This is the beginning of an answer that is never finished. ".repeat(10) });
    const mode = view.getByLabel("Mode", { exact: true });
    await mode.selectOption("Read only");
    await say("Go on");
    await last.getByText("This is the beginning").waitFor();
    app.child.kill("SIGKILL");
    await log.getByText("ended in the middle of this turn").waitFor();
    assert.match(await last.textContent(), /This is the beginning/);
    // A message that is sent meanwhile never reaches the program, and is kept.
    const buttons = await log.getByRole("button", { name: "Continue" }).count();
    await page.evaluate(() => {
      const { agent, conversations } = window.plugin.services;
      if (agent.state.kind === "ready") throw new Error("the program is back already");
      [...conversations.open.values()].at(-1).send({ text: "Too early", shared: [] });
    });
    await view.getByText("Next: Too early").waitFor();
    assert.equal(await log.getByText("Too early", { exact: true }).count(), 0, "it is not shown as sent");
    assert.equal(await log.getByRole("button", { name: "Continue" }).count(), buttons);
    await view.getByRole("button", { name: "Edit: Too early" }).click();
    assert.equal(await message.inputValue(), "Too early");
    await message.fill("");
    await app.until("ready");
    model.reply = () => "Here I am again.";
    await log.getByRole("button", { name: "Continue" }).last().click();
    await answered("Here I am again.");
    // What was chosen holds for the program that was started again, too.
    assert.equal(await mode.inputValue(), "read");
    assert.doesNotMatch(JSON.stringify(model.requests.at(-1).tools), /append_to_note/);
    await mode.selectOption("Ask before changes");
  });

  step("conversation: conversations are listed, changed and deleted", async () => {
    await view.getByRole("button", { name: "New", exact: true }).click();
    await page.waitForFunction(() => document.querySelectorAll(".vault-agent-entry").length === 0);
    model.reply = () => "A new beginning.";
    await say("What is next?");
    await answered("A new beginning.");
    await view.getByRole("button", { name: "Conversations" }).click();
    const sessions = view.locator(".vault-agent-sessions .vault-agent-link");
    await sessions.nth(1).waitFor();
    await app.check("sessions", { pictures: true });
    await sessions.nth(1).click();
    await log.getByText("How do I make compost?").waitFor();
    await view.getByRole("button", { name: "Conversations" }).click();
    await view.getByRole("button", { name: /^Delete What is next/ }).click();
    await page.waitForFunction(() => document.querySelectorAll(".vault-agent-sessions .vault-agent-link").length === 1);
    await view.getByRole("button", { name: "Conversations" }).click();
  });

  step("plans: steps are shown and left out, progress is shown, the plan is undone and kept as a macro", async () => {
    const before = await textsOf(vault);
    const create = (id, name) => ({ id, tool: "write_note", preview: `Create ${name}`, args: { path: `Plan/${name}.md`, content: `# ${name}\n` } });
    const plan = { version: "1.0", goal: "A note for each bed", riskLevel: "writes", assumptions: ["There are three beds."], steps: [create("one", "Bed one"), create("two", "Bed two"), create("three", "Bed three")] };
    model.reply = () => JSON.stringify(plan);
    await say("/plan a note for each bed");
    await card.getByText("A note for each bed", { exact: true }).waitFor();
    assert.match(await card.textContent(), /Assumes: There are three beds\.3 steps, 3 notes/);
    const plugin = card.getByRole("link", { name: "Bed Planner" });
    assert.equal(await plugin.getAttribute("href"), "obsidian://show-plugin?id=bed-planner");
    assert.equal(await card.getByText("Kanban").count(), 0, "a plugin for something else");
    await app.check("plan-card", { pictures: true });
    const cut = await card.locator(".vault-agent-item > .vault-agent-excerpt").evaluateAll((texts) =>
      texts.filter((text) => {
        text.append(" and so on".repeat(100));
        return text.scrollHeight > text.clientHeight + 1;
      }).length,
    );
    assert.equal(cut, 0, "a long step is not cut");
    await card.getByRole("checkbox", { name: /Create Bed two/ }).uncheck();
    await card.getByRole("button", { name: "Show what is left" }).click();
    await card.getByText("Does not run: a person left it out").waitFor();
    assert.deepEqual(await textsOf(vault), before, "nothing is done before the approval");
    await card.getByRole("button", { name: "Approve", exact: true }).click();
    await last.getByText("saves this plan").waitFor();
    await idle();
    assert.deepEqual(Object.keys(await textsOf(vault)).filter((name) => name.startsWith("Plan/")).sort(), ["Plan/Bed one.md", "Plan/Bed three.md"]);
    assert.equal(await log.locator(".vault-agent-entry.is-plan").last().locator(".is-completed").count(), 2);
    assert.equal(await log.locator(".vault-agent-entry.is-plan").count(), 1);
    // Another change and another plan make neither of the buttons mean something else.
    model.calls([[append("Since then")]]);
    await say("Note it");
    await card.getByRole("button", { name: "Approve", exact: true }).click();
    await answered("Done.");
    model.reply = () => JSON.stringify({ ...plan, goal: "Another plan", steps: [create("other", "Other")] });
    await say("/plan another");
    await card.getByText("Another plan", { exact: true }).waitFor();
    await card.getByRole("button", { name: "Approve", exact: true }).click();
    await page.waitForFunction(() => [...document.querySelectorAll(".vault-agent-card.is-decided button")].filter(({ textContent }) => textContent === "Save as macro").length === 2);
    await idle();
    const ran = log.locator(".vault-agent-card.is-decided").filter({ has: page.getByRole("button", { name: "Save as macro" }) }).first();
    await ran.getByLabel("Name of a macro").fill("Beds");
    await ran.getByRole("button", { name: "Save as macro" }).click();
    await log.getByText("Saved Beds.").waitFor();
    await ran.getByRole("button", { name: "Undo…" }).click();
    await card.locator(".vault-agent-kind.is-deleted").nth(1).waitFor();
    await card.getByRole("button", { name: "Approve", exact: true }).click();
    await last.getByText("Done: transaction").waitFor();
    await idle();
    const after = await textsOf(vault);
    assert.deepEqual(Object.keys(after).filter((name) => name.startsWith("Plan/")), ["Plan/Other.md"]);
    assert.match(after["Inbox.md"], /Since then/);
    assert.deepEqual({ ...after, "Plan/Other.md": undefined, "Inbox.md": "" }, { ...before, "Plan/Other.md": undefined, "Inbox.md": "" });
  });

  step("macros: a saved plan is a command, and runs again after an approval without the model", async () => {
    const { length } = model.requests;
    await page.waitForFunction(() => window.app.commands.has("macro-beds"));
    assert.equal(await page.evaluate(() => window.app.commands.get("macro-beds").name), "Run saved action: Beds");
    await app.command("macro-beds");
    const dialog = page.getByRole("dialog");
    await dialog.locator(".vault-agent-file").nth(1).waitFor();
    await app.check("macro", { pictures: true });
    await dialog.getByRole("button", { name: "Run", exact: true }).click();
    await dialog.waitFor({ state: "detached" });
    assert.match(await read("Plan/Bed one.md"), /# Bed one/);
    assert.equal(model.requests.length, length);
  });

  liveHost({ app, model, vault, step, say, message, card, last, log, idle, read });

  step("approvals: twenty of two thousand files each scroll", async () => {
    const took = await page.evaluate(async () => {
      const { conversations } = window.plugin.services;
      const sessionId = [...conversations.open.keys()].at(-1);
      const diff = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
      const files = Array.from({ length: 2_000 }, (_, number) => ({ kind: "modified", path: `Folder/Note ${number}.md`, to: null, diff, added: 1, removed: 1, inside: [] }));
      const parts = files.map(({ path }) => ({ path, diff }));
      const about = { tool: "bulk", question: "Change 2,000 notes?", risk: "write", undo: "It can be undone.", leaves: null, folders: [], notices: [], items: [], files };
      const began = performance.now();
      window.withdraw = Array.from({ length: 20 }, (_, number) => {
        const abort = new AbortController();
        const vault = { ...about, parts: number % 2 === 0 ? parts : [] };
        const options = ["allow", "pick", "reject"].map((optionId) => ({ optionId, name: optionId, kind: "" }));
        void conversations.asked("session/request_permission", { sessionId, toolCall: { toolCallId: `many-${number}`, _meta: { vault } }, options }, abort.signal);
        return abort;
      });
      const log = document.querySelector(".vault-agent-log");
      const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
      await frame();
      const drawn = performance.now() - began;
      let slowest = 0;
      for (let at = 0; at < 60; at++) {
        const before = performance.now();
        log.scrollTop = (log.scrollHeight * at) / 60;
        await frame();
        slowest = Math.max(slowest, performance.now() - before);
      }
      const built = (selector) => log.querySelectorAll(`.vault-agent-card:not(.is-decided) ${selector}`).length;
      const counts = { rows: built("details.vault-agent-file"), diffs: built(".vault-agent-diff"), elements: log.querySelectorAll("*").length };
      const pressed = performance.now();
      [...log.querySelectorAll("button")].find(({ textContent }) => textContent === "Show everything").click();
      await frame();
      return { drawn, slowest, whole: performance.now() - pressed, ...counts };
    });
    console.log(`20 approvals of 2,000 files: drawn in ${Math.round(took.drawn)} ms, slowest frame ${Math.round(took.slowest)} ms, ${took.elements} elements; everything of one in ${Math.round(took.whole)} ms`);
    // However fast this machine is: a hundred rows of each card are built, and twenty of them with their diff.
    assert.deepEqual([took.rows, took.diffs], [20 * 100, 20 * 20]);
    await page.evaluate(() => window.withdraw.forEach((abort) => abort.abort()));
    await page.waitForFunction(() => document.querySelectorAll(".vault-agent-card:not(.is-decided)").length === 0);
  });

  step("conversation: it fits a narrow side bar", async () => {
    await page.setViewportSize({ width: 240, height: 800 });
    model.calls([[append("Narrow")]]);
    await say("Add it");
    await card.locator(".is-added").first().waitFor();
    await app.check("narrow-conversation");
    await app.picture("narrow-conversation");
    await card.getByRole("button", { name: "Reject", exact: true }).click();
    await idle();
  });

  return {
    app,
    async close() {
      await app.close();
      model.close();
    },
  };
}
