// The app as the program's host, in the conversation: the selection of the editor becomes notes and links, and commands of
// the app run after an approval.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { textsOf } from "./harness.mjs";

const IDEAS = "# Ideas\n\nFor the spring:\n\n- Wildlife pond\n- Bee hotel\n- Herb spiral\n\nAsk at the market.\n";

/** Adds the steps, with what the steps of the conversation use. */
export function liveHost({ app, model, vault, step, say, message, card, last, log, idle, read }) {
  const { page } = app;
  const approve = () => card.getByRole("button", { name: "Approve", exact: true }).click();
  const done = async () => {
    await last.getByText("Done: transaction").waitFor();
    await idle();
  };

  /** Opens a note in the editor, with the lines between two texts selected, as it is until the focus leaves it. */
  const openInEditor = (name, from, to) =>
    page.evaluate(
      ([name, text, from, to]) => {
        const { app, stub } = window;
        const leaf = (app.workspace.editorLeaf = new stub.WorkspaceLeaf(app.workspace));
        const view = (leaf.view = new stub.MarkdownView(leaf));
        Object.assign(view, { file: app.vault.getFileByPath(name), text, onSave: () => window.saveNote(name, view.text) });
        const [start, end] = [text.indexOf(from), text.indexOf(to) + to.length];
        const places = { from: view.editor.offsetToPos(start), to: view.editor.offsetToPos(end) };
        view.selected = { text: text.slice(start, end), ...places };
        view.editor.isFocused = true;
        // The side bar takes the focus, and the editor forgets the selection.
        document.body.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
        view.editor.isFocused = false;
        view.selected = { text: "", from: places.to, to: places.to };
      },
      [name, IDEAS, from, to],
    );

  step("host: selected bullets become a note each and links in their place, in one step of the editor's undo", async () => {
    await writeFile(path.join(vault, "Ideas.md"), IDEAS);
    await app.refresh();
    await page.exposeFunction("saveNote", (name, text) => writeFile(path.join(vault, name), text));
    await openInEditor("Ideas.md", "- Wildlife", "spiral");
    const before = await textsOf(vault);
    // A plan that makes a note of each bullet and links to it.
    const plan = {
      // `[*]` is of this version.
      version: "1.1",
      goal: "Create notes from bullet points",
      assumptions: ["Selection contains markdown bullets"],
      riskLevel: "writes",
      steps: [
        { id: "ensureFolder", tool: "vault.ensureFolder", args: { path: "Projects" }, preview: "Create folder Projects if needed" },
        { id: "parseBullets", tool: "util.parseMarkdownBullets", args: { text: "${selection}" }, preview: "Parse bullet points from selection" },
        {
          id: "createNotes",
          tool: "vault.createFile",
          foreach: { from: "$steps.parseBullets.items", itemName: "item" },
          args: { path: "Projects/${item.text}.md", content: "# ${item.text}\n\nCreated from bullet point." },
          preview: "Create note for each bullet",
        },
        { id: "replace", tool: "editor.replaceSelection", args: { links: "$steps.createNotes.items[*].path" }, preview: "Replace the selection with links" },
      ],
    };
    model.reply = () => JSON.stringify(plan);
    await message.fill("/plan create a note for each bullet in the Projects folder");
    await page.getByText("your selection: lines 5 to 7 of Ideas (41 characters)").waitFor();
    await app.check("host-plan-typed");
    await message.press("Enter");
    await card.getByText("Create notes from bullet points", { exact: true }).waitFor();
    assert.match(JSON.stringify(model.requests.at(-1).messages), /- Bee hotel/, "the model reads the selection");
    assert.deepEqual(await textsOf(vault), before, "nothing is done before the approval");
    await card.locator(".is-added", { hasText: "[[Bee hotel]]" }).waitFor();
    await app.check("host-plan");
    await approve();
    await last.getByText("saves this plan").waitFor();
    await idle();
    const after = await textsOf(vault);
    const linked = IDEAS.replace("- Wildlife pond\n- Bee hotel\n- Herb spiral", "- [[Wildlife pond]]\n- [[Bee hotel]]\n- [[Herb spiral]]");
    const made = ["Wildlife pond", "Bee hotel", "Herb spiral"].map((name) => [`Projects/${name}.md`, `# ${name}\n\nCreated from bullet point.`]);
    assert.deepEqual(after, { ...before, "Ideas.md": linked, ...Object.fromEntries(made) });
    const inEditor = () => page.evaluate(() => ({ text: window.app.workspace.editorLeaf.view.text, steps: window.app.workspace.editorLeaf.view.editor.steps }));
    assert.deepEqual(await inEditor(), { text: linked, steps: [IDEAS] }, "one step of the editor's own undo");
    await log.getByRole("button", { name: "Undo…" }).last().click();
    await card.locator(".vault-agent-kind.is-deleted").nth(2).waitFor();
    await approve();
    await done();
    assert.deepEqual(await textsOf(vault), before);
    assert.deepEqual(await inEditor(), { text: IDEAS, steps: [IDEAS, linked] }, "the undo is a step, too");
  });

  step("host: text that is typed and not saved is saved before the selection is read", async () => {
    const typed = IDEAS.replace("Ask at", "Today ask at");
    await page.evaluate((text) => {
      const { view } = window.app.workspace.editorLeaf;
      const place = { line: 8, ch: 0 };
      Object.assign(view, { text, selected: { text: "", from: place, to: place } });
    }, typed);
    model.reply = () => JSON.stringify({ version: "1.0", goal: "Insert a line", riskLevel: "writes", steps: [{ id: "insert", tool: "editor.insertAtCursor", args: { text: "Seeds.\n" } }] });
    await say("/plan insert a line");
    await card.locator(".is-added", { hasText: "Seeds." }).waitFor();
    assert.equal(await read("Ideas.md"), typed);
    await approve();
    await last.getByText("saves this plan").waitFor();
    await idle();
    assert.equal(await read("Ideas.md"), typed.replace("Today", "Seeds.\nToday"));
  });

  step("host: a command of the app is listed, and runs after an approval that names it", async () => {
    await page.evaluate(() => {
      window.ran = [];
      const run = (id) => () => window.ran.push([id, window.app.vault.getFileByPath("Ideas.md") !== null]);
      window.app.commands.set("editor:sort", { id: "editor:sort", name: "Sort <b>lines</b>", callback: run("editor:sort") });
    });
    const plan = {
      version: "1.0",
      goal: "Sort the lines",
      riskLevel: "commands",
      steps: [
        { id: "list", tool: "commands.list", args: { query: "sort" } },
        { id: "run", tool: "commands.run", args: { id: "$steps.list.commands[0].id" }, dependsOn: ["list"], preview: "Sort" },
        { id: "open", tool: "workspace.openFile", args: { path: "Ideas.md", line: 5, newLeaf: true }, dependsOn: ["run"] },
      ],
    };
    model.reply = () => JSON.stringify(plan);
    await say("/plan sort the lines");
    await card.getByText("runs the command editor:sort (Sort <b>lines</b>)").first().waitFor();
    assert.match(await card.textContent(), /Runs a command, cannot be undone/);
    assert.deepEqual(await page.evaluate(() => window.ran), [], "nothing runs before the approval");
    await app.check("host-command");
    await approve();
    await last.getByText("saves this plan").waitFor();
    await idle();
    assert.deepEqual(await page.evaluate(() => window.ran), [["editor:sort", true]]);
    assert.deepEqual(await page.evaluate(() => window.app.workspace.opened.at(-1)), { path: "Ideas.md", state: { active: true, eState: { line: 4 } }, inNewTab: true });
  });

  step("host: an app that does not answer makes a plan fail that needs it, and nothing else", async () => {
    await page.evaluate(() => {
      const { host } = window.plugin.services.agent;
      window.answers = host.asked;
      host.asked = (method, ...rest) => (method.startsWith("_vault/host/") ? new Promise(() => undefined) : window.answers.call(host, method, ...rest));
    });
    await say("/plan insert a line");
    await last.getByText("did not answer within 5 seconds").waitFor();
    await idle();
    model.calls([[{ tool: "read_note", args: { path: "Ideas.md" } }]]);
    await say("Read the ideas");
    await last.getByText("Done.").first().waitFor();
    await idle();
    await page.evaluate(() => (window.plugin.services.agent.host.asked = window.answers));
  });
}
