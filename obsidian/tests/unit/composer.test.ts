import type { App } from "obsidian";
import { beforeEach, expect, it } from "vitest";
import { selectionToShare } from "../../src/conversation/context";
import type { Message } from "../../src/conversation/conversation";
import { Composer } from "../../src/views/composer";

let parent: HTMLElement;

beforeEach(() => {
  activeDocument.body.empty();
  parent = activeDocument.body.createDiv();
});

it("a message that is put back is sent again with what was shared, before what was typed meanwhile", () => {
  const sent: Message[] = [];
  const composer = new Composer(parent, { app: {} as App, folder: "/v", commands: () => [], send: (message) => sent.push(message), stop: () => undefined, selection: () => null, focused: () => undefined });
  const [one, two] = [3, 7].map((line) => selectionToShare("/v", { path: "a.md", text: "x", from: line, to: line })) as [ReturnType<typeof selectionToShare>, ReturnType<typeof selectionToShare>];
  composer.putBack({ text: "Later", shared: [one] });
  composer.putBack({ text: "First", shared: [two, one] });
  expect(parent.querySelectorAll(".vault-agent-part")).toHaveLength(2);
  composer.send();
  expect(sent).toEqual([{ text: "First\nLater", shared: [two, one] }]);
  expect(parent.querySelectorAll(".vault-agent-part")).toHaveLength(0);
});

it("a plan says what it reads of the editor before it is sent", () => {
  let selection: { path: string; text: string; from: number; to: number } | null = { path: "Garden/Beds.md", text: "- one", from: 3, to: 3 };
  const composer = new Composer(parent, { app: {} as App, folder: "/v", commands: () => [], send: () => undefined, stop: () => undefined, selection: () => selection, focused: () => undefined });
  const reads = parent.querySelector<HTMLElement>(".vault-agent-composer > .vault-agent-muted");
  const type = (text: string) => {
    composer.inputEl.value = text;
    composer.inputEl.dispatchEvent(new Event("input"));
    return reads?.style.display === "none" ? "" : reads?.textContent;
  };
  expect(type("/planet")).toBe("");
  expect(type("/plan a")).toBe("With /plan, the model is sent the path of the open note and your selection: line 3 of Beds (5 characters).");
  selection = null;
  expect(type("/plan ab")).toContain("nothing is selected");
  composer.send();
  expect(reads?.style.display).toBe("none");
});
