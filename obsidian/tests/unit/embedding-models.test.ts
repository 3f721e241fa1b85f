import { beforeEach, expect, it, vi } from "vitest";
import type { Agent } from "../../src/agent/process";
import { EmbeddingModelSettings } from "../../src/embedding-models";
import type { EmbeddingModelsResult, ModelWork } from "../../src/protocol";

let parent: HTMLElement;

beforeEach(() => {
  activeDocument.body.empty();
  parent = activeDocument.body.createDiv();
});

/** The settings of a program whose download or embedding lasts until the test ends it. */
async function open(work: ModelWork | null = null) {
  const state: EmbeddingModelsResult = {
    used: "minilm",
    models: [
      { name: "minilm", description: "English", installed: true, tested: true },
      { name: "e5", description: "100 languages", installed: false, tested: false },
    ],
    work,
  };
  const asked: string[] = [];
  const ends: Array<{ done: () => void; fail: (error: Error) => void; signal: AbortSignal }> = [];
  const request = (method: string, params: { name?: string; revision?: string }, signal?: AbortSignal) => {
    asked.push([method.replace("_vault/", ""), params.name, params.revision].filter(Boolean).join(" "));
    if (method === "_vault/describe_download") return Promise.resolve({ text: "e5: 471 MB from https://hub at commit aa, licence mit", revision: "aa" });
    if (method === "_vault/embedding_models") return Promise.resolve({ ...state });
    return new Promise((resolve, reject) => {
      if (signal === undefined) throw new Error("it cannot be stopped");
      signal.addEventListener("abort", () => reject(new Error("cancelled")));
      const done = () => {
        if (method === "_vault/use_embedding_model") state.used = "e5";
        else state.models = state.models.map((model) => ({ ...model, installed: true }));
        state.work = null;
        resolve({ ...state });
      };
      ends.push({ done, fail: reject, signal });
    });
  };
  const settings = new EmbeddingModelSettings(parent, { state: { kind: "ready" }, request } as unknown as Agent);
  await settings.show();
  const button = (name: string) => {
    const found = [...parent.querySelectorAll("button")].find(({ textContent }) => textContent === name);
    if (found === undefined) throw new Error(`no button ${name}`);
    return found;
  };
  const choose = (name: string) => {
    const select = parent.querySelector("select");
    if (select === null) throw new Error("no list");
    select.value = name;
    select.dispatchEvent(new Event("change"));
  };
  return { settings, state, asked, ends, button, choose };
}

it("a model is downloaded after its size, address and licence were shown, with a bar, and then used", async () => {
  const { state, asked, ends, button, choose } = await open();
  expect(button("Use it for this vault").disabled).toBe(true);
  choose("e5");
  button("Download…").click();
  await vi.waitFor(() => expect(parent.textContent).toContain("471 MB from https://hub at commit aa, licence mit"));
  expect(asked).toEqual(["embedding_models", "describe_download e5"]);
  button("Download it").click();
  expect(asked.at(-1)).toBe("add_embedding_model e5 aa");
  state.work = { name: "e5", step: "download", share: 0.25 };
  await vi.waitFor(() => expect(parent.textContent).toContain("Downloading e5: 25 %"));
  expect(parent.querySelector("progress")?.value).toBe(0.25);
  ends[0]?.done();
  await vi.waitFor(() => expect(parent.querySelector("progress")).toBeNull());
  choose("e5");
  button("Use it for this vault").click();
  expect(asked.at(-1)).toBe("use_embedding_model e5");
  ends[1]?.done();
  await vi.waitFor(() => expect(parent.querySelector("select")?.value).toBe("e5"));
  expect(button("Use it for this vault").disabled).toBe(true);
});

it("a person who declines downloads nothing", async () => {
  const { asked, button, choose } = await open();
  choose("e5");
  button("Download…").click();
  await vi.waitFor(() => button("Cancel"));
  button("Cancel").click();
  await vi.waitFor(() => button("Use it for this vault"));
  expect(asked.some((method) => method.startsWith("add_"))).toBe(false);
});

it("a download can be stopped, and a failed one says why", async () => {
  const { ends, button, choose } = await open();
  const begin = async () => {
    choose("e5");
    button("Download…").click();
    await vi.waitFor(() => button("Download it"));
    button("Download it").click();
  };
  await begin();
  button("Stop").click();
  expect(ends[0]?.signal.aborted).toBe(true);
  await vi.waitFor(() => button("Use it for this vault"));
  await begin();
  ends[1]?.fail(new Error("the disk is full"));
  await vi.waitFor(() => expect(parent.querySelector(".is-error")?.textContent).toBe("the disk is full"));
});

it("work that was begun before is followed, until the settings are closed", async () => {
  const { settings, state, asked } = await open({ name: "e5", step: "embed", share: 0.5 });
  await vi.waitFor(() => expect(parent.textContent).toContain("Embedding your notes with e5: 50 %"));
  state.work = null;
  await vi.waitFor(() => expect(parent.querySelector("progress")).toBeNull());
  state.work = { name: "e5", step: "embed", share: 0.7 };
  await settings.show();
  settings.hide();
  const count = asked.length;
  await new Promise((resolve) => window.setTimeout(resolve, 700));
  expect(asked).toHaveLength(count);
});
