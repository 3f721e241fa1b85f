import { beforeEach, describe, expect, it } from "vitest";
import type { FileChange, IndexStateResult, PastTransaction, SearchHit } from "../../src/protocol";
import { indexLines, preferencesFrom } from "../../src/settings";
import { ApprovalModal, type Services } from "../../src/views/approval-modal";
import { labelOf, revertOf } from "../../src/views/changes-view";
import { diffLines, showDiff } from "../../src/views/diff";
import { showFileChanges } from "../../src/views/file-changes";
import { newPath } from "../../src/views/rename-modal";
import { merged } from "../../src/views/search-view";
import { ago, baseName, counted, showSegments, visible } from "../../src/views/text";

let parent: HTMLElement;

beforeEach(() => {
  parent = createDiv();
});

describe("text of notes", () => {
  it("stays text, whatever it holds", () => {
    const hostile = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
    showSegments(parent, [{ text: hostile, isMatch: false }, { text: hostile, isMatch: true }]);
    expect(parent.textContent).toBe(hostile + hostile);
    expect(parent.querySelectorAll("img, script")).toHaveLength(0);
    expect(parent.querySelector("mark")?.textContent).toBe(hostile);
  });

  it("shows characters that hide or reorder others", () => {
    expect(visible("gpj\u202Eexe")).toBe("gpj⟨U+202E⟩exe");
    expect(visible("a\u200Bb\uFEFF\r\u{E0041}")).toBe("a⟨U+200B⟩b⟨U+FEFF⟩␍⟨U+E0041⟩");
    expect(visible("a\u{E0101}\u3164b\uFE00\uFE01\u200D\u200D")).toBe("a⟨U+E0101⟩⟨U+3164⟩b\uFE00⟨U+FE01⟩\u200D⟨U+200D⟩");
    // Line ends, joined emoji, and letters of any script stay as they are.
    for (const text of ["a\n\tb", "👩‍🌾", "❤️‍🔥", "नमस्ते", "سلام", "東京"]) expect(visible(text)).toBe(text);
  });

  it("is counted and dated", () => {
    expect([counted(1, "note"), counted(2_000, "note")]).toEqual(["1 note", "2,000 notes"]);
    const now = new Date("2026-05-01T12:00:00Z");
    expect(["2026-05-01T11:59:30Z", "2026-05-01T11:58:00Z", "2026-05-01T09:00:00Z", "2026-04-28T12:00:00Z"].map((time) => ago(time, now))).toEqual(["just now", "2 minutes ago", "3 hours ago", "3 days ago"]);
    expect([baseName("a/b.md"), baseName("c.canvas")]).toEqual(["b", "c.canvas"]);
  });
});

const DIFF = "--- a/x.md\n+++ b/x.md\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n@@ -10 +10,2 @@\n ten\n+--- eleven\n\\ No newline at end of file\n";

it("a dialog approves nothing that was not shown", async () => {
  const asked: string[] = [];
  const added = Array.from({ length: 301 }, (_, line) => `+line ${line}`).join("\n");
  const file: FileChange = { kind: "created", path: "a.md", to: null, diff: `@@ -0,0 +1,301 @@\n${added}\n`, added: 301, removed: 0, inside: [] };
  const answers = { "_vault/prepare": { digest: "d", files: [file], folders: [], notices: [], notes: 1, links: 0, denied: null }, "_vault/apply": { transaction: 1, notices: [] } };
  const request = (method: keyof typeof answers) => {
    asked.push(method);
    return Promise.resolve(answers[method]);
  };
  const services = { app: { workspace: { iterateAllLeaves: () => undefined } }, agent: { request }, changed: () => undefined } as unknown as Services;
  const modal = new ApprovalModal(services, "Redo", "Redo");
  modal.open();
  await modal.show({ kind: "redo", transaction: 1 });
  const button = modal.contentEl.querySelector<HTMLButtonElement>("button.mod-cta");
  expect([button?.textContent, button?.disabled, modal.contentEl.textContent?.includes("line 300")]).toEqual(["Show everything", false, false]);
  await modal.apply();
  expect([button?.textContent, asked, modal.contentEl.textContent?.includes("line 300")]).toEqual(["Redo", ["_vault/prepare"], true]);
  await modal.apply();
  expect(asked).toEqual(["_vault/prepare", "_vault/apply"]);
});

describe("diffs", () => {
  it("have lines with their numbers", () => {
    expect(diffLines(DIFF)).toEqual([
      { kind: "same", number: 1, text: "one" },
      { kind: "removed", number: 2, text: "two" },
      { kind: "added", number: 2, text: "2" },
      { kind: "same", number: 3, text: "three" },
      { kind: "gap" },
      { kind: "same", number: 10, text: "ten" },
      { kind: "added", number: 11, text: "--- eleven" },
    ]);
  });

  it("are shown in part when they are long, and as a whole on demand", () => {
    const added = Array.from({ length: 1_000 }, (_, line) => `+line ${line}`).join("\n");
    showDiff(parent, `@@ -0,0 +1,1000 @@\n${added}\n`);
    expect(parent.querySelectorAll(".is-added")).toHaveLength(300);
    parent.querySelector("button")?.click();
    expect(parent.querySelectorAll(".is-added")).toHaveLength(1_000);
    expect(parent.querySelector("button")).toBeNull();
  });

  it("of thousands of files are drawn as they are looked at", () => {
    const file = (number: number): FileChange => ({ kind: "modified", path: `n${number}.md`, to: null, diff: DIFF, added: 2, removed: 1, inside: [] });
    showFileChanges(parent, { files: Array.from({ length: 2_000 }, (_, number) => file(number)), folders: [], notices: ["<b>careful</b>"] });
    expect(parent.querySelectorAll("details")).toHaveLength(100);
    expect(parent.querySelectorAll(".vault-agent-diff")).toHaveLength(20);
    expect(parent.querySelector(".vault-agent-notice")?.textContent).toBe("<b>careful</b>");
    parent.querySelector<HTMLButtonElement>(".vault-agent-files > button")?.click();
    expect(parent.querySelectorAll("details")).toHaveLength(200);
  });
});

it("hits by meaning come before those that only words found, each once", () => {
  const hit = (path: string): SearchHit => ({ path, title: path, headings: [], line: 1, startLine: 1, score: 1, isWeak: false, excerpt: [], passage: [], tags: [], modified: "" });
  const paths = (most: number) => merged([hit("a"), hit("b")], [hit("b"), hit("c"), hit("d")], most).map(({ path }) => path);
  expect([paths(9), paths(3)]).toEqual([["a", "b", "c", "d"], ["a", "b", "c"]]);
});

describe("names", () => {
  it("of a new path have the file's extension", () => {
    expect(newPath(" /Garden//Soil ", "md")).toBe("Garden/Soil.md");
    expect(newPath("Soil.MD", "md")).toBe("Soil.MD");
    expect(newPath("v1.2", "md")).toBe("v1.2.md");
    expect([newPath("Garden/", ""), newPath(" ", "md")]).toEqual(["Garden", ""]);
  });

  it("of transactions say what was done and what can be done", () => {
    const past = (more: Partial<PastTransaction>): PastTransaction => ({ transaction: 1, time: "", label: "rename_note", kind: "change", of: null, status: "done", paths: [], pathsInAll: 0, ...more });
    expect(labelOf(past({}))).toBe("Rename note");
    expect(labelOf(past({ label: "vault.createFile" }))).toBe("Vault createFile");
    expect(labelOf(past({ label: "Tidy the inbox" }))).toBe("Tidy the inbox");
    expect(labelOf(past({ kind: "undo", of: 7 }))).toBe("Undo of 7");
    expect(revertOf(past({}))).toBe("undo");
    expect(revertOf(past({ status: "undone" }))).toBe("redo");
    expect(revertOf(past({ kind: "redo" }))).toBe("undo");
    for (const none of [past({ kind: "undo" }), past({ status: "damaged" }), past({ status: "rolled-back" }), past({ kind: "redo", status: "undone" })]) expect(revertOf(none)).toBeNull();
  });
});

describe("settings", () => {
  it("take whatever was saved", () => {
    expect([preferencesFrom(null), preferencesFrom({ program: 7 }), preferencesFrom({ program: "/x" })]).toEqual([{ program: "" }, { program: "" }, { program: "/x" }]);
  });

  it("describe the index", () => {
    const state: IndexStateResult = { version: "1.0.0", vault: "/v", index: null };
    expect(indexLines(state)).toContainEqual(["Index", "not made yet"]);
    const index = { file: "/c/index.db", bytes: 2_500_000, model: "minilm", notes: 10, unread: 0, passages: 40, pending: 10, lastSync: null, skipped: [{ path: "a.md", reason: "too large" }], advice: [] };
    const lines = indexLines({ ...state, index });
    expect(lines).toContainEqual(["Meaning", "75 % of the passages so far"]);
    expect(lines).toContainEqual(["Index file", "/c/index.db (2.5 MB)"]);
    expect(lines).toContainEqual(["Not indexed", "a.md: too large"]);
  });
});
