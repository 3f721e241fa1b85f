import { beforeEach, describe, expect, it } from "vitest";
import type { PermissionRequest } from "../../src/agent/acp";
import { Conversation } from "../../src/conversation/conversation";
import type { ViewServices } from "../../src/views/agent-view";
import { ApprovalCard } from "../../src/views/approval-card";
import { diffLines, markedWords } from "../../src/views/diff";
import { showForm } from "../../src/views/form-card";
import { differingWords } from "../../src/views/words";
import type { FileChange } from "../../src/protocol";

let parent: HTMLElement;

beforeEach(() => {
  activeDocument.body.empty();
  parent = activeDocument.body.createDiv();
});

const DIFF = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
const file = (number: number): FileChange => ({ kind: "modified", path: `n${number}.md`, to: null, diff: DIFF, added: 1, removed: 1, inside: [] });
const asked: unknown[] = [];
let saving = (): Promise<unknown> => Promise.resolve({ name: "Beds" });
const services = {
  app: { workspace: { iterateAllLeaves: () => undefined } },
  agent: {
    request: (...request: unknown[]) => {
      asked.push(request);
      return saving();
    },
  },
  macrosChanged: () => asked.push("macros"),
} as unknown as ViewServices;

function ask(more: object, options = ["allow", "pick", "reject"], rawInput: object = { path: "a.md", edits: [1] }) {
  const prompts: string[] = [];
  const prompt = (_: string, blocks: unknown) => {
    prompts.push(JSON.stringify(blocks));
    return Promise.resolve("end_turn");
  };
  const conversation = new Conversation("s", { prompt, cancel: () => undefined });
  const approval = { tool: "t", question: "<b>Really?</b>", risk: "write", undo: "It can be undone.", leaves: "Nothing leaves.", files: [], folders: [], notices: [], parts: [], items: [], ...more };
  const request: PermissionRequest = {
    sessionId: "s",
    toolCall: { toolCallId: String(parent.childElementCount), rawInput, _meta: { vault: approval } },
    options: options.map((optionId) => ({ optionId, name: optionId, kind: "" })),
  };
  const answer = conversation.ask(request, new AbortController().signal);
  const entry = conversation.entries[conversation.entries.length - 1];
  if (entry?.kind !== "question") throw new Error("no question");
  const element = parent.createDiv();
  const card = new ApprovalCard(element, conversation, entry.question, services);
  conversation.onChange((changed) => {
    if (changed === entry) card.show();
  });
  card.show();
  const button = (text: string) => [...element.querySelectorAll("button")].find((one) => one.textContent === text);
  return { element, answer, button, conversation, prompts, question: entry.question };
}

describe("approval cards", () => {
  it("show the risk, the purpose and everything else as text", () => {
    const { element } = ask({ purpose: "Edits a note." });
    expect(element.querySelector(".vault-agent-badge.is-write")?.textContent).toBe("Changes notes");
    expect(element.querySelector("b")).toBeNull();
    expect(element.textContent).toContain("<b>Really?</b>");
    expect(element.textContent).toContain("Edits a note.");
    expect([...element.querySelectorAll("textarea")].map(({ value, readOnly }) => [value, readOnly])).toEqual([["a.md", true], ["[\n 1\n]", true]]);
  });

  it("of thousands of files, twenty of them, are drawn as they are looked at", () => {
    const files = Array.from({ length: 2_000 }, (_, number) => file(number));
    const parts = files.map(({ path }) => ({ path, diff: DIFF }));
    for (let number = 0; number < 20; number++) ask(number % 2 === 0 ? { files } : { files, parts });
    expect(parent.querySelectorAll("details.vault-agent-file")).toHaveLength(20 * 100);
    expect(parent.querySelectorAll(".vault-agent-diff")).toHaveLength(20 * 20);
  });

  const lines = (count: number) => `@@ -0,0 +1,${count} @@\n${Array.from({ length: count }, (_, at) => `+${at + 1 === count ? "hidden" : "line"}\n`).join("")}`;
  const many = <Made>(count: number, make: (text: string, at: number) => Made) => Array.from({ length: count }, (_, at) => make(at + 1 === count ? "hidden" : "shown", at));
  const part = (text: string, at: number) => ({ path: `n${at}.md`, diff: `@@ -0,0 +1 @@\n+${text}\n` });
  it.each([
    ["a long diff", { files: [{ ...file(1), diff: lines(301) }] }, "Approve"],
    ["a file that is closed", { files: many(21, (text, at) => ({ ...file(at), diff: part(text, at).diff })) }, "Approve"],
    ["a file after the first hundred", { files: many(101, (text) => ({ ...file(1), path: text, diff: null })) }, "Approve"],
    ["a file in a folder", { files: [{ ...file(1), diff: null, inside: many(101, (text) => text) }] }, "Approve"],
    ["a part that is closed", { parts: many(21, part) }, "Approve"],
    ["a long diff of a part", { parts: [part("shown", 0), { path: "b.md", diff: lines(301) }] }, "Approve"],
    ["a part after the first hundred", { parts: many(101, part) }, "Approve"],
    ["an item after the first hundred", { items: many(101, (text) => text) }, "Share 101"],
    ["a long item", { items: ["one", `${"x".repeat(5_000)}hidden`] }, "Share 2"],
    ["an argument", { tool: "fetch" }, "Approve"],
  ])("approve nothing that was not shown: %s", async (_, more, approve) => {
    for (const pressed of [approve, "Approve for this conversation"]) {
      const { element, button, answer } = ask(more, ["allow", "allow_always", "pick", "reject"], { url: "hidden" });
      const shown = () => element.textContent?.includes("hidden");
      const [first, always] = [button("Show everything") ?? button(approve), button("Approve for this conversation")];
      const wasShown = shown();
      expect([first?.textContent, always?.disabled]).toEqual([wasShown ? approve : "Show everything", !wasShown]);
      // Whatever presses it, for example a script of another plugin.
      if (always !== undefined) always.disabled = false;
      const press = pressed === approve ? first : always;
      press?.click();
      if (!wasShown) {
        expect(await Promise.race([answer, Promise.resolve("open")])).toBe("open");
        expect([shown(), first?.textContent, always?.disabled]).toEqual([true, approve, false]);
        press?.click();
      }
      expect(await answer).toEqual({ outcome: { outcome: "selected", optionId: pressed === approve ? "allow" : "allow_always" } });
    }
  });

  it("are not approved by the second half of a double click, or the same key again", async () => {
    const { element, button, answer } = ask({ files: many(21, (_, at) => file(at)) });
    const press = button("Show everything");
    press?.focus();
    press?.click();
    expect(activeDocument.activeElement?.className).toBe("vault-agent-card-title");
    press?.dispatchEvent(new MouseEvent("click", { detail: 2 }));
    expect(await Promise.race([answer, Promise.resolve("open")])).toBe("open");
    expect(element.querySelectorAll(".vault-agent-diff")).toHaveLength(21);
  });

  it("are approved as they were pressed, whatever is ticked while editors are saved", async () => {
    const { element, button, answer } = ask({ parts: many(21, part) });
    const box = element.querySelector<HTMLInputElement>("input[type=checkbox]");
    box?.click();
    button("Show what is left")?.click();
    box?.click();
    expect(await answer).toEqual({ outcome: { outcome: "selected", optionId: "pick" } });
  });

  it("are approved at the first press by a person who has opened everything", async () => {
    const { element, button, answer } = ask({ files: many(21, (_, at) => file(at)) });
    expect(button("Approve")).toBeUndefined();
    for (const details of [...element.querySelectorAll<HTMLDetailsElement>("details.vault-agent-file")]) {
      details.open = true;
      details.dispatchEvent(new Event("toggle"));
    }
    button("Approve")?.click();
    expect(await answer).toEqual({ outcome: { outcome: "selected", optionId: "allow" } });
  });

  it("tick parts that are not drawn yet, too", async () => {
    const parts = Array.from({ length: 300 }, (_, number) => ({ path: `n${number}.md`, diff: DIFF }));
    const { element, button, answer, conversation } = ask({ files: [], parts });
    button("None")?.click();
    expect(button("Show what is left")?.disabled).toBe(true);
    const box = element.querySelector<HTMLInputElement>("input[type=checkbox]");
    box?.click();
    expect(element.textContent).toContain("1 of 300 changes ticked");
    button("Show what is left")?.click();
    expect(await answer).toEqual({ outcome: { outcome: "selected", optionId: "pick" } });
    const form = conversation.form({ toolCallId: "0", message: "" }, new AbortController().signal);
    expect(await form).toEqual({ action: "accept", content: { ticked: ["0"] } });
  });

  it.each([
    ["parts", { parts: [{ path: "a.md", diff: DIFF }, { path: "b.md", diff: DIFF }] }],
    ["items", { items: ["one", "two"] }],
  ])("approve nothing that is not ticked, by no button: %s", async (_, more) => {
    const { element, button, answer } = ask(more, ["allow", "allow_always", "pick", "reject"]);
    const always = button("Approve for this conversation");
    expect(always?.disabled).toBe(false);
    element.querySelector<HTMLInputElement>("input[type=checkbox]")?.click();
    expect(always?.disabled).toBe(true);
    // Whatever presses it, for example a script of another plugin.
    if (always !== undefined) always.disabled = false;
    always?.click();
    expect(await answer).toEqual({ outcome: { outcome: "selected", optionId: "pick" } });
  });

  it.each(["Show the change", "Approve for this conversation"])("approve nothing with arguments that were edited, but show it: %s", async (pressed) => {
    const { element, button, answer, conversation } = ask({}, ["allow", "allow_always", "edit", "reject"]);
    const [path] = [...element.querySelectorAll("textarea")];
    const type = (text: string) => {
      if (path !== undefined) path.value = text;
      path?.dispatchEvent(new Event("input"));
    };
    type("b.md");
    const always = button("Approve for this conversation");
    expect([button("Approve"), always?.style.display]).toEqual([undefined, "none"]);
    type("a.md");
    expect([button("Approve")?.disabled, always?.style.display]).toEqual([false, ""]);
    type("b.md");
    button(pressed)?.click();
    expect(await answer).toEqual({ outcome: { outcome: "selected", optionId: "edit" } });
    const form = conversation.form({ toolCallId: "0", message: "" }, new AbortController().signal);
    expect(await form).toEqual({ action: "accept", content: { path: "b.md", edits: "[\n 1\n]" } });
  });

  it("send an argument that was not edited as it is, whatever a field makes of it", async () => {
    const { element, button, answer, conversation } = ask({}, ["allow", "edit"], { a: "1\r\n2", b: "x" });
    expect([...element.querySelectorAll(".vault-agent-field")].map(({ textContent }) => textContent)).toEqual(["aHidden characters: ␍", "b"]);
    const b = element.querySelectorAll("textarea")[1];
    if (b !== undefined) b.value = "y";
    b?.dispatchEvent(new Event("input"));
    button("Show the change")?.click();
    await answer;
    expect(await conversation.form({ toolCallId: "0", message: "" }, new AbortController().signal)).toEqual({ action: "accept", content: { a: "1\r\n2", b: "y" } });
  });

  it("name the characters of an argument that cannot be seen", () => {
    const { element } = ask({}, ["allow", "edit"], { path: "gpj\u202Eexe", content: "a\u200Bb\u200B\u202E" });
    const named = [...element.querySelectorAll<HTMLElement>(".vault-agent-hidden")];
    expect(named.map(({ textContent }) => textContent)).toEqual(["Hidden characters: ⟨U+202E⟩", "Hidden characters: ⟨U+200B⟩ ⟨U+202E⟩"]);
    const path = element.querySelector("textarea");
    if (path !== null) path.value = "plain";
    path?.dispatchEvent(new Event("input"));
    expect([named[0]?.textContent, named[0]?.style.display]).toEqual(["", "none"]);
  });

  it("share the ticked items of a result", async () => {
    const { element, button, answer, question } = ask({ items: ["one", "two <i>x</i>"] });
    element.querySelectorAll<HTMLInputElement>("input[type=checkbox]")[0]?.click();
    button("Share 1")?.click();
    expect(await answer).toEqual({ outcome: { outcome: "selected", optionId: "pick" } });
    expect(question.outcome).toBe("Shared 1 of 2.");
    expect(element.querySelector("i")).toBeNull();
  });

  it("of a plan approve the steps that are shown, and leave others out", async () => {
    const step = (id: string, skipped: string | null) => ({ id, tool: "write_note", preview: `Create <i>${id}</i>`, risk: "write", calls: 1, skipped, notices: [] });
    const plan = (...skipped: Array<string | null>) => ({ goal: "Beds", assumptions: ["Three"], notes: 2, links: 0, steps: skipped.map((reason, at) => step(String(at), reason)) });
    const first = ask({ plan: plan(null, null) });
    expect(first.button("Approve")?.disabled).toBe(false);
    expect(first.element.querySelector("i")).toBeNull();
    first.element.querySelectorAll<HTMLInputElement>("input[type=checkbox]")[1]?.click();
    first.button("Show what is left")?.click();
    expect(await first.answer).toEqual({ outcome: { outcome: "selected", optionId: "pick" } });
    // Asked again without the step, what is shown can be approved; the step can be ticked again.
    const again = ask({ plan: plan(null, "a person left it out") });
    expect([...again.element.querySelectorAll<HTMLInputElement>("input[type=checkbox]")].map(({ checked }) => checked)).toEqual([true, false]);
    again.button("Approve")?.click();
    expect(await again.answer).toEqual({ outcome: { outcome: "selected", optionId: "allow" } });
  });

  it("of a plan that ran undo and save this one, whatever ran since", async () => {
    const plan = { goal: "Beds", assumptions: [], notes: 1, links: 0, steps: [{ id: "a", tool: "write_note", preview: "Create", risk: "write", calls: 1, skipped: null, notices: [] }] };
    const first = ask({ plan });
    first.button("Approve")?.click();
    await first.answer;
    expect(first.button("Undo…"), "nothing can be undone before it is done").toBeUndefined();
    const ended = (conversation: Conversation, toolCallId: string, transaction?: unknown) => conversation.apply({ sessionUpdate: "tool_call_update", toolCallId, status: "completed", _meta: { vault: { transaction } } });
    ended(first.conversation, "other", 8);
    ended(first.conversation, "0", "7");
    expect(first.button("Undo…"), "the change is not known").toBeUndefined();
    ended(first.conversation, "0", 7);
    first.button("Undo…")?.click();
    expect(first.prompts).toEqual([JSON.stringify([{ type: "text", text: "/undo 7" }])]);
    const name = first.element.querySelector<HTMLInputElement>("input[type=text]");
    for (const [text, answer] of [["Beds", () => Promise.resolve({ name: "Beds" })], ["Taken", () => Promise.reject(new Error("there is one already"))]] as const) {
      saving = answer;
      if (name !== null) name.value = text;
      first.button("Save as macro")?.click();
    }
    await new Promise((resolve) => window.setTimeout(resolve));
    expect(asked).toEqual([["_vault/save_macro", { name: "Beds", transaction: 7 }], ["_vault/save_macro", { name: "Taken", transaction: 7 }], "macros"]);
    expect(first.conversation.entries.flatMap((entry) => (entry.kind === "notice" ? [entry.text] : []))).toEqual(["Saved Beds.", "there is one already"]);
  });

  it("offer only what the program offers", () => {
    const { button, element } = ask({}, ["allow", "reject"]);
    expect(button("Approve for this conversation")).toBeUndefined();
    expect(element.querySelector("input[type=text]")).toBeNull();
  });
});

describe("forms", () => {
  it("read what is filled in", async () => {
    const conversation = new Conversation("s", { prompt: () => Promise.resolve("end_turn"), cancel: () => undefined });
    const properties = {
      topic: { type: "string", title: "Topic", default: "gar\u202Eden" },
      count: { type: "integer", default: 3 },
      isSure: { type: "boolean" },
      parts: { type: "array", items: { anyOf: [{ const: "0", title: "One" }, { const: "1", title: "Two" }] }, default: ["0"] },
    };
    const answer = conversation.form({ message: "Values", requestedSchema: { properties } }, new AbortController().signal);
    const entry = conversation.entries[0];
    if (entry?.kind !== "form") throw new Error("no form");
    showForm(parent, conversation, entry.form);
    expect(parent.textContent).toContain("Hidden characters: ⟨U+202E⟩");
    parent.querySelector<HTMLInputElement>("fieldset input:not(:checked)")?.click();
    parent.querySelector<HTMLButtonElement>("button.mod-cta")?.click();
    expect(await answer).toEqual({ action: "accept", content: { topic: "gar\u202Eden", count: 3, isSure: false, parts: ["0", "1"] } });
  });
});

describe("words that differ", () => {
  it("are marked in lines that replace each other", () => {
    const marked = (segments: Array<{ text: string; isMatch: boolean }> | undefined) => segments?.map(({ text, isMatch }) => (isMatch ? `[${text}]` : text)).join("");
    const words = differingWords("The compost was warm.", "The compost was very hot.");
    expect([marked(words?.before), marked(words?.after)]).toEqual(["The compost was [warm].", "The compost was [very hot]."]);
    expect(differingWords("one", "two")).toBeNull();
    expect(differingWords("", "two")).toBeNull();
    const lines = diffLines("@@ -1,2 +1,3 @@\n-a b\n-c d\n+a x\n+c y\n+z\n");
    expect([...markedWords(lines).keys()].sort()).toEqual([0, 1, 2, 3]);
  });
});
