import { beforeEach, describe, expect, it } from "vitest";
import type { App } from "obsidian";
import { AppHost, changedRange } from "../../src/host";
import { MarkdownView, WorkspaceLeaf, makeApp, type App as StubApp } from "../stub/obsidian";

const TEXT = "# Beds\n\n- one\n- two\n";

let files: Record<string, string>;
let app: StubApp;
let host: AppHost;
let view: MarkdownView;
const never = new AbortController().signal;

const ask = (method: string, params: unknown, signal = never) => host.asked(method, params, signal);
const state = () => ask("_vault/host/state", { longestSelection: 100, mostFiles: 10 });
const edit = (before: string, after: string, signal = never) => ask("_vault/host/edit", { path: "Beds.md", before, after }, signal);

beforeEach(async () => {
  files = { "Beds.md": TEXT, "Other.md": "other" };
  app = makeApp({ folder: "/v", list: () => Promise.resolve({ ...files }), read: (path) => Promise.resolve(files[path] ?? "") });
  await app.vault.refresh();
  host = new AppHost(app as unknown as App, "vault-agent");
  const leaf = (app.workspace.editorLeaf = new WorkspaceLeaf(app.workspace));
  view = new MarkdownView(leaf);
  leaf.view = view;
  view.file = app.vault.getFileByPath("Beds.md");
  view.text = TEXT;
  view.onSave = () => {
    files["Beds.md"] = view.text;
    return Promise.resolve();
  };
});

const select = (text: string, from: { line: number; ch: number }, to: { line: number; ch: number }) => {
  view.selected = { text, from, to };
};

describe("the state of the editor", () => {
  it("has the selection, and its note is saved first", async () => {
    view.text = `${TEXT}typed\n`;
    select("- one\n- two", { line: 2, ch: 0 }, { line: 3, ch: 5 });
    expect(await state()).toEqual({
      activeFile: "Beds.md",
      selection: { text: "- one\n- two", from: { line: 2, ch: 0 }, to: { line: 3, ch: 5 } },
      cursor: { line: 3, ch: 5 },
      openFiles: ["Beds.md"],
    });
    expect(files["Beds.md"]).toBe(`${TEXT}typed\n`);
  });

  it("is not that of another note, which is opened while the first is saved", async () => {
    view.text = "typed";
    select("secret", { line: 0, ch: 0 }, { line: 0, ch: 6 });
    view.onSave = () => {
      view.file = app.vault.getFileByPath("Other.md");
      return Promise.resolve();
    };
    await expect(state()).rejects.toThrow("shows another note now");
  });

  it("does not save a note with other line ends that is saved", async () => {
    files["Beds.md"] = TEXT.replaceAll("\n", "\r\n");
    await state();
    expect(app.workspace.saved).toEqual([]);
  });

  it("keeps a selection that the editor forgets when the focus leaves it", async () => {
    const [from, to] = [{ line: 2, ch: 2 }, { line: 2, ch: 5 }];
    select("one", from, to);
    view.editor.isFocused = true;
    host.rememberIfFocused();
    view.editor.isFocused = false;
    select("", to, to);
    expect(await state()).toMatchObject({ selection: { text: "one", from, to } });
    // A press in the side bar does not make it forget.
    host.rememberIfFocused();
    expect(await state()).toMatchObject({ selection: { text: "one" } });
    view.text = TEXT.replace("one", "uno");
    expect(await state()).toMatchObject({ selection: null });
    view.text = TEXT;
    view.editor.isFocused = true;
    expect(await state()).toMatchObject({ selection: null, cursor: to });
    host.remember();
    view.editor.isFocused = false;
    expect(await state()).toMatchObject({ selection: null });
  });

  it("is that of the active file in reading view and without an editor", async () => {
    view.getMode = () => "preview";
    select("one", { line: 2, ch: 2 }, { line: 2, ch: 5 });
    app.workspace.openFile("Other.md");
    expect(await state()).toEqual({ activeFile: "Other.md", selection: null, cursor: null, openFiles: ["Beds.md"] });
  });

  it("is an error if the selection is too long", async () => {
    select("x".repeat(101), { line: 0, ch: 0 }, { line: 0, ch: 101 });
    await expect(state()).rejects.toThrow("more than 100 characters");
  });
});

describe("an edit in an editor", () => {
  it("is one step of its undo and is saved", async () => {
    expect(await edit(TEXT, TEXT.replace("- one\n- two", "- [[one]]\n- [[two]]"))).toEqual({ edited: true });
    expect(files["Beds.md"]).toBe("# Beds\n\n- [[one]]\n- [[two]]\n");
    expect(view.editor.steps).toEqual([TEXT]);
    view.editor.undo();
    expect(view.text).toBe(TEXT);
  });

  it("is not made in an editor with other text, in reading view, elsewhere, or too late", async () => {
    const no = { edited: false };
    expect(await edit("other", "new")).toEqual(no);
    expect(await ask("_vault/host/edit", { path: "Other.md", before: "other", after: "new" })).toEqual(no);
    const withdrawn = new AbortController();
    withdrawn.abort();
    expect(await edit(TEXT, "new", withdrawn.signal)).toEqual(no);
    view.getMode = () => "preview";
    expect(await edit(TEXT, "new")).toEqual(no);
    expect([view.text, app.workspace.saved]).toEqual([TEXT, []]);
  });

  it("saves what is typed meanwhile, so that the program finds it in the file and does not write over it", async () => {
    view.text = `${TEXT}typed\n`;
    expect(await edit(TEXT, "new")).toEqual({ edited: false });
    expect([view.text, files["Beds.md"]]).toEqual([`${TEXT}typed\n`, `${TEXT}typed\n`]);
    // Other line ends are no other text.
    files["Beds.md"] = view.text.replaceAll("\n", "\r\n");
    expect(await edit(files["Beds.md"], "new")).toEqual({ edited: false });
    expect(app.workspace.saved).toEqual(["Beds.md"]);
  });

  it("that cannot be saved is taken back, because the program writes the file", async () => {
    view.onSave = () => Promise.reject(new Error("disk full"));
    expect(await edit(TEXT, "new")).toEqual({ edited: false });
    view.onSave = () => Promise.resolve();
    expect(await edit(TEXT, "new")).toEqual({ edited: false });
    expect([view.text, files["Beds.md"]]).toEqual([TEXT, TEXT]);
  });

  it.each([
    ["a b c", "a x c"],
    ["aaa", "aa"],
    ["", "new"],
    ["old", ""],
    ["same", "same"],
    ["\u{1F331}", "\u{1F332}"],
    ["x\u{1F331}y", "x\u{1F731}y"],
  ])("changes the smallest range: %j, %j", (before, after) => {
    const { start, end, text } = changedRange(before, after);
    expect(before.slice(0, start) + text + before.slice(end)).toBe(after);
    for (const part of [before.slice(0, start), before.slice(end), text]) expect(() => encodeURIComponent(part)).not.toThrow();
  });

  it("leaves the text around it alone", () => {
    expect(changedRange("- one\n- two\n", "- one\n- [[two]]\n")).toEqual({ start: 8, end: 11, text: "[[two]]" });
  });
});

describe("commands", () => {
  it("are listed and run, without those of the plugin itself", async () => {
    const ran: string[] = [];
    app.commands.set("app:sort", { id: "app:sort", name: "Sort", callback: () => ran.push("sort") });
    app.commands.set("vault-agent:restart", { id: "vault-agent:restart", name: "Restart", callback: () => ran.push("restart") });
    expect(await ask("_vault/host/commands", { mostCommands: 10 })).toEqual({ commands: [{ id: "app:sort", name: "Sort" }] });
    // One that a plugin has registered without a name does not hide the others.
    app.commands.set("app:bare", { id: "app:bare" } as unknown as Parameters<typeof app.commands.set>[1]);
    expect(await ask("_vault/host/commands", { mostCommands: 10 })).toMatchObject({ commands: [{ id: "app:sort" }, { id: "app:bare", name: "app:bare" }] });
    const run = (id: string) => ask("_vault/host/run_command", { id });
    expect([await run("app:sort"), await run("vault-agent:restart"), await run("app:none")]).toEqual([{ ran: true }, { ran: false }, { ran: false }]);
    expect(ran).toEqual(["sort"]);
  });
});

describe("a note", () => {
  it("is opened at a line, also one that the app has not noticed yet", async () => {
    const opened = ask("_vault/host/open", { path: "New.md", line: 3, inNewTab: true });
    files["New.md"] = "new";
    await app.vault.refresh();
    expect(await opened).toEqual({ opened: true });
    expect(app.workspace.opened).toEqual([{ path: "New.md", state: { active: true, eState: { line: 2 } }, inNewTab: true }]);
  });

  it("is not waited for when the request is withdrawn", async () => {
    const withdrawn = new AbortController();
    const opened = ask("_vault/host/open", { path: "Never.md", line: null, inNewTab: false }, withdrawn.signal);
    await Promise.resolve();
    withdrawn.abort();
    expect(await opened).toEqual({ opened: false });
  });
});

it("answers no other method", () => {
  expect([ask("session/request_permission", {}), ask("toString", {})]).toEqual([null, null]);
});
