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
  const composer = new Composer(parent, { app: {} as App, folder: "/v", commands: () => [], send: (message) => sent.push(message), stop: () => undefined, focused: () => undefined });
  const [one, two] = [3, 7].map((line) => selectionToShare("/v", { path: "a.md", text: "x", from: line, to: line })) as [ReturnType<typeof selectionToShare>, ReturnType<typeof selectionToShare>];
  composer.putBack({ text: "Later", shared: [one] });
  composer.putBack({ text: "First", shared: [two, one] });
  expect(parent.querySelectorAll(".vault-agent-part")).toHaveLength(2);
  composer.send();
  expect(sent).toEqual([{ text: "First\nLater", shared: [two, one] }]);
  expect(parent.querySelectorAll(".vault-agent-part")).toHaveLength(0);
});
