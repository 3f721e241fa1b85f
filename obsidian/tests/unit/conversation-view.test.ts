import type { WorkspaceLeaf } from "obsidian";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Agent, AgentState } from "../../src/agent/process";
import { Conversations } from "../../src/conversation/conversations";
import { ConversationView, type ConversationServices } from "../../src/views/conversation-view";
import { makeApp, WorkspaceLeaf as StubLeaf } from "../stub/obsidian";

beforeEach(() => activeDocument.body.empty());

/** The view over a program of which a test decides what it answers. */
async function open() {
  const app = makeApp({ folder: "/v", list: () => Promise.resolve({}), read: () => Promise.resolve("") });
  const answers = new Map<string, (params: unknown) => unknown>();
  answers.set("session/new", () => ({ sessionId: "s" }));
  answers.set("_vault/model_state", () => ({ provider: "openai", model: "x", host: "api.openai.com" }));
  const answer = (method: string, params: unknown) => Promise.resolve().then(() => (answers.get(method) ?? (() => ({})))(params));
  const state: AgentState = { kind: "ready", program: "", version: "" };
  const agent = { vault: "/v", client: null, state, onState: () => () => undefined, request: answer, call: answer, cancelTurn: () => undefined } as unknown as Agent;
  const conversations = new Conversations(agent);
  const nothing = () => undefined;
  const services = { app, agent, conversations, changed: nothing, macrosChanged: nothing, openSettings: nothing, openSearch: nothing } as unknown as ConversationServices;
  const view = new ConversationView(new StubLeaf(app.workspace) as unknown as WorkspaceLeaf, services);
  activeDocument.body.append(view.containerEl);
  await view.onOpen();
  const message = view.containerEl.querySelector<HTMLTextAreaElement>("textarea");
  if (message === null) throw new Error("no field");
  return { view, conversations, answers, message, text: () => view.containerEl.textContent ?? "" };
}

describe("the view of a conversation", () => {
  it("reads where messages go again when a conversation begins", async () => {
    const { answers, message, text } = await open();
    await vi.waitFor(() => expect(text()).toContain("are sent to api.openai.com"));
    // A terminal changes the settings.
    answers.set("_vault/model_state", () => ({ provider: null, model: null, host: "proxy.test" }));
    message.focus();
    await vi.waitFor(() => expect(text()).toContain("are sent to proxy.test"));
    expect(text()).not.toContain("api.openai.com");
  });

  it("does not go on saying where messages go when that cannot be known", async () => {
    const { answers, message, text } = await open();
    await vi.waitFor(() => expect(text()).toContain("are sent to api.openai.com"));
    answers.set("_vault/model_state", () => Promise.reject(new Error("the settings cannot be read")));
    message.focus();
    await vi.waitFor(() => expect(text()).toContain("It is not known where your messages go: the settings cannot be read"));
    expect(text()).not.toContain("api.openai.com");
  });

  it("shows the value of an option that is in force, and keeps the focus on it", async () => {
    const { view, answers, message, text } = await open();
    const options = (currentValue: string) => [{ id: "mode", name: "Mode", type: "select", currentValue, options: [{ value: "ask", name: "Ask" }, { value: "read", name: "Read only" }] }];
    answers.set("session/new", () => ({ sessionId: "s", configOptions: options("ask") }));
    const select = () => view.containerEl.querySelector("select");
    const choose = (value: string) => {
      const shown = select();
      if (shown === null) throw new Error("no option");
      shown.focus();
      shown.value = value;
      shown.dispatchEvent(new Event("change"));
    };
    message.focus();
    await vi.waitFor(() => expect(select()?.value).toBe("ask"));
    answers.set("session/set_config_option", () => Promise.reject(new Error("there is no such mode")));
    choose("read");
    await vi.waitFor(() => expect(text()).toContain("there is no such mode"));
    expect(select()?.value).toBe("ask");
    answers.set("session/set_config_option", () => ({ configOptions: options("read") }));
    const before = select();
    choose("read");
    await vi.waitFor(() => expect(select()).not.toBe(before));
    expect([select()?.value, activeDocument.activeElement]).toEqual(["read", select()]);
  });
});
