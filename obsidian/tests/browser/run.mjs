// Each screen of the built plugin in a real browser, over a real vault-agent on a copy of the demo vault:
//   node tests/browser/run.mjs PROGRAM [CHROMIUM]
// SCREENSHOTS=FOLDER keeps pictures of the screens. `npm run build` comes first.

import assert from "node:assert/strict";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { conversation } from "./conversation.mjs";
import { Harness, textsOf } from "./harness.mjs";
import { latency, makeNotes } from "./latency.mjs";

const [given, executablePath = "/usr/bin/chromium"] = process.argv.slice(2);
const program = path.resolve(given ?? fileURLToPath(new URL("../../../target/debug/vault-agent", import.meta.url)));
const demo = process.env.DEMO_VAULT ?? fileURLToPath(new URL("../../../testdata/vaults/demo", import.meta.url));

const scratch = mkdtempSync(path.join(tmpdir(), "vault-agent-plugin-"));
const vault = path.join(scratch, "Notes");
cpSync(demo, vault, { recursive: true });
const HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script> [[Compost]] gpj\u202Eexe quinquereme\n';
writeFileSync(path.join(vault, "Hostile <b>note.md"), HOSTILE);
const DIARY = "# Allotment diary\n\nToday the compost was warm.\n\nThe tomatoes need a cane each.\n";
writeFileSync(path.join(vault, "Allotment diary.md"), DIARY);

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const app = await Harness.open(browser, { folder: vault, home: path.join(scratch, "home"), program });
const { page } = app;

const steps = [];
const step = (name, run) => steps.push([name, run]);
const field = page.getByRole("combobox");
const results = page.getByRole("listbox", { name: "Notes found" }).getByRole("option");
const dialog = page.getByRole("dialog");
const status = page.locator(".vault-agent-status").first();
const read = (name) => readFile(path.join(vault, name), "utf8");

/** Waits until the search has answered by words and by meaning. */
const settled = () => page.waitForFunction(() => /words and meaning|Nothing found/.test(document.querySelector(".vault-agent-status")?.textContent ?? ""));

async function search(query) {
  await field.fill("");
  await field.pressSequentially(query);
  await settled();
}

const opened = () => page.evaluate(() => window.app.workspace.opened.at(-1));

step("a search finds notes by words at once and by meaning after that", async () => {
  await app.indexed();
  await app.command("search");
  await field.waitFor();
  await page.evaluate(() => {
    window.statuses = [];
    new MutationObserver(() => window.statuses.push(document.querySelector(".vault-agent-status").textContent)).observe(document.querySelector(".vault-agent-status"), { childList: true, characterData: true, subtree: true });
  });
  await search("compost");
  const statuses = await page.evaluate(() => window.statuses);
  assert.ok(statuses.findIndex((text) => text.endsWith("by words")) < statuses.findIndex((text) => text.includes("words and meaning")), statuses.join("\n"));
  assert.ok((await results.locator("mark").allTextContents()).some((text) => text.toLowerCase() === "compost"));
  assert.match(await results.first().textContent(), /Compost/);
  await app.check("search", { pictures: true });
});

step("the keyboard selects, previews, opens and links", async () => {
  const first = await field.getAttribute("aria-activedescendant");
  await field.press("ArrowDown");
  const second = await field.getAttribute("aria-activedescendant");
  assert.notEqual(first, second);
  assert.equal(await page.locator('[role="option"][aria-selected="true"]').getAttribute("id"), second);
  const place = await page.locator(`[id="${second}"] .vault-agent-path`).textContent();
  const [, name, line] = /^(.*):(\d+)$/.exec(place);
  await field.press("Shift+Enter");
  assert.ok((await page.locator(`[id="${second}"] .vault-agent-passage`).textContent()).length > 20);
  await app.check("search-preview");
  await field.press("Enter");
  assert.deepEqual(await opened(), { path: `${name}.md`, state: { active: true, eState: { line: Number(line) - 1 } }, inNewTab: false });
  await field.press("Control+Enter");
  assert.equal((await opened()).inNewTab, true);
  await page.evaluate(() => {
    const { app, stub } = window;
    app.workspace.editorLeaf = new stub.WorkspaceLeaf(app.workspace);
    app.workspace.editorLeaf.view = new stub.MarkdownView(app.workspace.editorLeaf);
  });
  await field.press("Alt+Enter");
  assert.deepEqual(await page.evaluate(() => window.app.workspace.inserted), [`[[${path.basename(name)}]]`]);
  const dragged = await results.first().evaluate((element) => {
    const event = new DragEvent("dragstart", { dataTransfer: new DataTransfer(), bubbles: true });
    element.dispatchEvent(event);
    return event.dataTransfer.getData("text/plain");
  });
  assert.match(dragged, /^\[\[.+\]\]$/);
  await field.press("Shift+Enter");
  await field.press("Escape");
  assert.equal(await field.inputValue(), "");
});

/** The option that the field names to screen readers, which must be on the page. */
const activeOption = () =>
  field.evaluate((element) => {
    const id = element.getAttribute("aria-activedescendant");
    if (id !== null && document.getElementById(id) === null) throw new Error(`no option ${id}`);
    return id;
  });

step("operators and their values are completed", async () => {
  await field.pressSequentially("pa");
  await page.getByRole("listbox", { name: "Completions" }).getByRole("option").first().waitFor();
  await field.press("Tab");
  assert.equal(await field.inputValue(), "path:");
  await field.pressSequentially("kit");
  await app.check("search-completions", { pictures: true });
  await field.press("ArrowDown");
  assert.match(await activeOption(), /completion-0$/);
  await field.press("Enter");
  assert.equal(await field.inputValue(), "path:Kitchen ");
  await activeOption();
  await field.pressSequentially("sugar");
  await settled();
  for (const place of await results.locator(".vault-agent-path").allTextContents()) assert.match(place, /^Kitchen\//);
  await field.fill("/(/");
  await page.locator(".vault-agent-status.is-error").waitFor();
  assert.equal(await results.count(), 0, "the results of another query");
  await app.check("search-error");
});

step("hostile notes stay text", async () => {
  await search("quinquereme");
  const text = await results.first().textContent();
  assert.ok(text.includes("Hostile <b>note") && text.includes("⟨U+202E⟩"), text);
  await field.press("Shift+Enter");
  assert.ok((await page.locator(".vault-agent-passage").textContent()).includes("<script>"));
  assert.equal(await page.locator(".vault-agent-view img, .vault-agent-view script, .vault-agent-view b").count(), 0);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  await field.press("Shift+Enter");
});

const before = await textsOf(vault);

step("related notes follow the open note", async () => {
  await app.openFile("Garden/Compost.md");
  await app.command("related");
  const related = page.locator(".vault-agent-related");
  await related.first().waitFor();
  const ofCompost = await related.allTextContents();
  await app.openFile("Allotment diary.md");
  await page.waitForFunction(() => document.querySelector(".vault-agent-of").textContent === "Allotment diary");
  await page.waitForFunction((old) => [...document.querySelectorAll(".vault-agent-related")].map((row) => row.textContent).join() !== old, ofCompost.join());
  await app.check("related", { pictures: true });
});

step("a suggested link is made after its preview, as one change that is undone", async () => {
  const row = page.locator(".vault-agent-missing", { hasText: "the compost was warm" });
  await row.getByRole("button", { name: /Make the link/ }).click();
  await dialog.locator(".is-added").first().waitFor();
  assert.match(await dialog.locator(".is-added").textContent(), /\[\[Compost\|compost\]\]/);
  assert.deepEqual(await textsOf(vault), before, "nothing is done before the approval");
  await app.check("approval", { pictures: true });
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(await textsOf(vault), before);
  await row.getByRole("button", { name: /Make the link/ }).click();
  await dialog.locator(".is-added").first().waitFor();
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  assert.match(await read("Allotment diary.md"), /Today the \[\[Compost\|compost\]\] was warm/);
  await app.refresh();
  await row.waitFor({ state: "detached" });
  await page.locator(".notice").getByRole("button", { name: "Undo…" }).click();
  await dialog.locator(".is-removed").first().waitFor();
  await dialog.getByRole("button", { name: "Undo", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  assert.deepEqual(await textsOf(vault), before);
  await app.refresh();
});

step("several ticked links are one change", async () => {
  const boxes = page.locator(".vault-agent-missing").getByRole("checkbox");
  await page.locator(".vault-agent-missing", { hasText: "the compost was warm" }).waitFor();
  await page.locator(".vault-agent-missing", { hasText: "The tomatoes need" }).getByRole("checkbox").check();
  await page.locator(".vault-agent-missing", { hasText: "the compost was warm" }).getByRole("checkbox").check();
  assert.ok((await boxes.count()) >= 2);
  await page.getByRole("button", { name: "Link 2 ticked places…" }).click();
  await dialog.locator(".is-added").nth(1).waitFor();
  await dialog.getByRole("button", { name: "Apply" }).click();
  await dialog.waitFor({ state: "detached" });
  const text = await read("Allotment diary.md");
  assert.ok(text.includes("[[Compost|compost]]") && text.includes("[[Tomatoes|tomatoes]]"), text);
  await app.refresh();
});

const change = page.locator(".vault-agent-change");

step("recent changes have diffs, undo and redo", async () => {
  await app.command("changes");
  await change.first().waitFor();
  assert.match(await change.first().textContent(), /Make suggested links/);
  await change.first().locator(".vault-agent-link").click();
  await change.first().locator(".is-added").nth(1).waitFor();
  await app.check("changes", { pictures: true });
  await change.first().getByRole("button", { name: /^Undo/ }).click();
  await dialog.getByRole("button", { name: "Undo", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  assert.deepEqual(await textsOf(vault), before);
  await app.refresh();
  await page.locator(".vault-agent-change.is-undone").first().getByRole("button", { name: /^Redo/ }).click();
  await dialog.getByRole("button", { name: "Redo", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  assert.match(await read("Allotment diary.md"), /\[\[Compost\|compost\]\]/);
  await app.refresh();
  await app.command("undo");
  await dialog.getByRole("button", { name: "Undo", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  assert.deepEqual(await textsOf(vault), before);
  await app.refresh();
});

step("a rename shows the links that change, saves open editors, and is shown again after a conflict", async () => {
  await app.openFile("Garden/Compost.md");
  await app.command("rename");
  const input = dialog.getByLabel("New path in the vault");
  assert.equal(await input.inputValue(), "Garden/Compost");
  const button = dialog.getByRole("button", { name: "Rename" });
  assert.ok(await button.isDisabled());
  await input.fill("Garden/Rot/Compost heap");
  await dialog.locator(".vault-agent-file").first().waitFor();
  assert.match(await dialog.locator(".vault-agent-status").textContent(), /^\d+ notes, \d+ links$/);
  const paths = await dialog.locator(".vault-agent-file .vault-agent-path").allTextContents();
  assert.ok(paths.includes("Garden/Compost.md → Garden/Rot/Compost heap.md") && paths.length > 2, paths.join());
  await app.check("rename", { pictures: true });
  // The editor of a note in the change has text that is not saved yet.
  const linking = paths.find((name) => !name.includes("→"));
  await page.exposeFunction("saveNote", async () => writeFile(path.join(vault, linking), `${await read(linking)}\nTyped a moment ago.\n`));
  await page.evaluate((linking) => {
    const { app } = window;
    const { view } = app.workspace.editorLeaf;
    view.file = app.vault.getFileByPath(linking);
    view.onSave = async () => {
      view.onSave = async () => undefined;
      await window.saveNote();
    };
  }, linking);
  await button.click();
  await dialog.locator(".vault-agent-status", { hasText: "have changed since this was shown" }).waitFor();
  assert.deepEqual(await page.evaluate(() => window.app.workspace.saved), [linking]);
  assert.equal((await textsOf(vault))["Garden/Compost.md"], before["Garden/Compost.md"], "the conflict moved nothing");
  await button.click();
  await dialog.waitFor({ state: "detached" });
  const after = await textsOf(vault);
  assert.equal(after["Garden/Compost.md"], undefined);
  assert.ok(after[linking].includes("Compost heap") && after[linking].endsWith("Typed a moment ago.\n"), after[linking]);
  await app.refresh();
  await app.command("undo");
  await dialog.getByRole("button", { name: "Undo", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  assert.deepEqual(await textsOf(vault), { ...before, [linking]: `${before[linking]}\nTyped a moment ago.\n` });
  await app.refresh();
});

step("the change of another program is listed by itself", async () => {
  const shown = (await change.first().textContent()) ?? "";
  const other = await Harness.open(browser, { folder: vault, home: path.join(scratch, "home"), program });
  await other.until("ready");
  const wanted = { kind: "rename", path: "Ideas.md", newPath: "Thoughts.md" };
  const { digest } = await other.request("_vault/prepare", { change: wanted });
  await other.request("_vault/apply", { change: wanted, digest });
  await other.close();
  await app.refresh();
  await page.waitForFunction((shown) => document.querySelector(".vault-agent-change")?.textContent !== shown, shown);
  assert.match(await change.first().textContent(), /Rename note/);
});

step("a program that is killed in the middle comes back, and what was found stays readable", async () => {
  await app.command("search");
  await search("garden");
  const { child } = app;
  const count = await results.count();
  assert.ok(count > 0);
  const pid = child.pid;
  child.kill("SIGSTOP");
  await field.pressSequentially(" tree");
  child.kill("SIGKILL");
  await app.until("restarting");
  assert.equal(await results.count(), count);
  assert.match(await page.locator(".vault-agent-page").first().textContent(), /started again/);
  await app.check("restarting");
  await app.until("ready");
  await settled();
  assert.notEqual(app.child.pid, pid);
  assert.match(await status.textContent(), /by words and meaning/);
  // It was answered for what is in the field now.
  assert.ok((await results.locator("mark").allTextContents()).some((text) => /tree/i.test(text)));
});

step("the settings show the index, and a program that is missing or too old has a page that helps", async () => {
  await app.openSettings();
  await page.getByText("complete").waitFor();
  await app.check("settings", { pictures: true });
  const setting = page.getByLabel("Path of the program");
  await setting.fill("/nowhere/vault-agent");
  await page.getByRole("button", { name: "Apply" }).click();
  await app.until("missing");
  assert.match(await page.locator(".vertical-tab-content").textContent(), /cargo install/);
  await app.check("missing");
  await page.evaluate(() => {
    document.querySelector(".workspace-split").show();
    document.querySelector(".vertical-tab-content").hide();
  });
  await app.check("missing-view", { pictures: true });
  const old = path.join(scratch, "old-agent");
  const hello = { jsonrpc: "2.0", id: 1, result: { protocolVersion: 1, agentInfo: { name: "vault-agent", version: "0.0.1" } } };
  writeFileSync(old, `#!/bin/sh\nread line\necho '${JSON.stringify(hello)}'\ncat >/dev/null\n`);
  chmodSync(old, 0o755);
  await page.evaluate(() => document.querySelector(".vertical-tab-content").show());
  await setting.fill(old);
  await page.getByRole("button", { name: "Apply" }).click();
  await app.until("too-old");
  assert.match(await page.locator(".workspace-split").textContent(), /too old/);
  await app.check("too-old");
  await setting.fill(program);
  await page.getByRole("button", { name: "Apply" }).click();
  await app.until("ready");
  assert.deepEqual(await page.evaluate(() => window.plugin.data), { program });
  await page.evaluate(() => {
    window.plugin.tabs[0].hide();
    document.querySelector(".vertical-tab-content").remove();
  });
});

step("a narrow side bar has everything in it", async () => {
  await page.setViewportSize({ width: 240, height: 700 });
  await page.evaluate(() => document.querySelector(".notice-container").remove());
  await app.command("search");
  await search("compost");
  await app.check("narrow-search");
  await app.picture("narrow-search");
  await app.command("related");
  await page.locator(".vault-agent-related").first().waitFor();
  await app.check("narrow-related");
  await app.picture("narrow-related");
  await app.command("changes");
  await change.first().waitFor();
  await app.check("narrow-changes");
});

step("on a phone it says that it needs the desktop", async () => {
  const before = app.children.size;
  const text = await page.evaluate(async () => {
    const { plugin, stub } = window;
    stub.Platform.isDesktopApp = false;
    const other = new plugin.constructor(window.app, { id: "vault-agent" });
    await other.onload();
    stub.Platform.isDesktopApp = true;
    return [...document.querySelectorAll(".notice")].at(-1).textContent;
  });
  assert.match(text, /desktop app only/);
  assert.equal(app.children.size, before);
});

async function runAll() {
  for (const [name, run] of steps.splice(0)) {
    const started = Date.now();
    await run();
    console.log(`ok ${name} (${Date.now() - started} ms)`);
  }
}

let failed = false;
let shown = page;
try {
  // ONLY=conversation leaves out what comes before it.
  if (process.env.ONLY === "conversation") steps.splice(0);
  await runAll();
  await app.close();
  const notes = path.join(scratch, "Conversation");
  cpSync(demo, notes, { recursive: true });
  writeFileSync(path.join(notes, "Allotment diary.md"), DIARY);
  const talk = await conversation(browser, { folder: notes, home: path.join(scratch, "conversation-home"), program, step });
  shown = talk.app.page;
  await runAll();
  await talk.close();
  console.log("ok it ends with the plugin, without errors in the console and without a request to the network");
  if (process.env.ONLY !== "conversation") {
    const many = path.join(scratch, "Many");
    mkdirSync(many);
    await makeNotes(many, 5_000);
    await latency(browser, { folder: many, home: path.join(scratch, "many-home"), program });
  }
} catch (error) {
  failed = true;
  console.error(error);
  const picture = path.join(tmpdir(), "vault-agent-plugin-failed.png");
  await shown.screenshot({ path: picture }).catch(() => undefined);
  console.error(`the page as it was: ${picture}`);
} finally {
  await browser.close();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}
process.exit(failed ? 1 : 0);
