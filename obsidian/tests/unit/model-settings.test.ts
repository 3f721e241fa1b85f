import { beforeEach, expect, it, vi } from "vitest";
import { ModelSettings } from "../../src/model-settings";
import type { ConversationServices } from "../../src/views/conversation-view";

let parent: HTMLElement;

beforeEach(() => {
  activeDocument.body.empty();
  parent = activeDocument.body.createDiv();
});

async function open() {
  const state = { provider: "openai", model: "x", allowedModels: [], host: "api.openai.com", key: null, problem: null, file: "", fixed: [], providers: [{ name: "openai", isLocal: false }], policy: [], policyFile: "" };
  const asked: string[] = [];
  const listing: Array<{ provider: string; answer: (models: string[]) => void; fail: (error: Error) => void }> = [];
  const request = (method: string, params: { provider?: string; model?: string }) => {
    asked.push([method, params.provider ?? ""].join(" ").trim());
    if (method === "_vault/models") return new Promise((resolve, reject) => listing.push({ provider: params.provider ?? "", answer: (models) => resolve({ models }), fail: reject }));
    return Promise.resolve(method === "_vault/set_model" ? { ...state, provider: params.provider, model: params.model } : state);
  };
  const services = { agent: { state: { kind: "ready" }, request }, conversations: { modelChanged: () => Promise.resolve() } } as unknown as ConversationServices;
  new ModelSettings(parent, services).show();
  const input = (name: string) => {
    const found = parent.querySelector<HTMLInputElement>(`input[aria-label="${name}"]`);
    if (found === null) throw new Error(`no field ${name}`);
    return found;
  };
  await vi.waitFor(() => input("Provider"));
  const type = (name: string, value: string) => {
    input(name).value = value;
    input(name).dispatchEvent(new Event("input"));
  };
  const button = (name: string) => {
    const found = [...parent.querySelectorAll("button")].find(({ textContent }) => textContent === name);
    if (found === undefined) throw new Error(`no button ${name}`);
    return found;
  };
  const offered = () => {
    const lists = parent.querySelectorAll(`[id="${input("Model").getAttribute("list") ?? ""}"]`);
    expect(lists).toHaveLength(1);
    return [...(lists[0]?.children ?? [])].map((option) => option.getAttribute("value"));
  };
  return { asked, listing, input, type, button, offered };
}

it("only the provider that is saved is asked for its models without a button", async () => {
  const { asked, listing, input, type, button, offered } = await open();
  type("Provider", "https://evil.test/v1");
  input("Model").focus();
  expect(asked).toEqual(["_vault/model_state"]);
  button("List models").click();
  expect(asked).toEqual(["_vault/model_state", "_vault/models https://evil.test/v1"]);
  type("Provider", "openai");
  input("Model").blur();
  input("Model").focus();
  expect(asked.at(-1)).toBe("_vault/models openai");
  // The answers come in another order than the questions.
  listing[1]?.answer(["x", "y"]);
  await vi.waitFor(() => expect(offered()).toEqual(["x", "y"]));
  listing[0]?.answer(["evil"]);
  await Promise.resolve();
  expect(offered()).toEqual(["x", "y"]);
});

it("there is one list of models, which is filled again, also after it was saved", async () => {
  const { listing, input, type, button, offered } = await open();
  for (const models of [["a", "b"], ["c"]]) {
    button("List models").click();
    listing.at(-1)?.answer(models);
    await vi.waitFor(() => expect(offered()).toEqual(models));
  }
  expect(parent.textContent).toContain("1 model in the list");
  type("Model", "c");
  button("Save").click();
  await vi.waitFor(() => expect(offered()).toEqual([]));
  input("Model").focus();
  listing.at(-1)?.answer(["d"]);
  await vi.waitFor(() => expect(offered()).toEqual(["d"]));
});

it("a list that fails says why, if it was asked for", async () => {
  const { listing, button } = await open();
  button("List models").click();
  listing[0]?.fail(new Error("no such host"));
  await vi.waitFor(() => expect(parent.querySelector(".vault-agent-status.is-error")?.textContent).toBe("no such host"));
});

it.each(["Provider", "Model", "Key"])("what is not saved cannot be tested: %s", async (name) => {
  const { input, type, button } = await open();
  const before = input(name).value;
  expect(button("Test").disabled).toBe(false);
  type(name, "other");
  expect(button("Test").disabled).toBe(true);
  type(name, before);
  expect(button("Test").disabled).toBe(false);
});
