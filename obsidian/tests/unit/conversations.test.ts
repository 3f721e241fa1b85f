import { describe, expect, it, vi } from "vitest";
import type { AgentState, Agent } from "../../src/agent/process";
import { NotReady } from "../../src/agent/process";
import { ConnectionClosed, RpcError } from "../../src/agent/rpc";
import { Conversations } from "../../src/conversation/conversations";

/** A program of which a test decides what it answers. */
function world() {
  const calls: Array<[string, unknown]> = [];
  const answers = new Map<string, () => Promise<unknown>>();
  let listener: (state: AgentState) => void = () => undefined;
  const agent = {
    vault: "/v",
    client: null,
    onState: (heard: typeof listener) => {
      listener = heard;
      return () => undefined;
    },
    call: (method: string, params: unknown) => {
      calls.push([method, params]);
      return (answers.get(method) ?? (() => Promise.resolve({})))();
    },
    cancelTurn: () => undefined,
  };
  answers.set("session/new", () => Promise.resolve({ sessionId: "s" }));
  answers.set("session/list", () => Promise.resolve({ sessions: [{ sessionId: "s", title: "Beds" }, { sessionId: "empty", title: "" }] }));
  const conversations = new Conversations(agent as unknown as Agent);
  const told = (sessionId: string, name: string) => {
    const update = { sessionUpdate: "available_commands_update", availableCommands: [{ name, description: "" }] };
    conversations.told("session/update", { sessionId, update });
  };
  return { conversations, calls, answers, told, methods: () => calls.map(([method]) => method), state: (state: AgentState) => listener(state) };
}

const message = { text: "Hi", shared: [] };

describe("conversations", () => {
  it("take what is told before the id of a new session is known", async () => {
    const { conversations, told, answers } = world();
    answers.set("session/new", () => {
      told("s", "plan");
      return Promise.resolve({ sessionId: "s" });
    });
    told("s", "never");
    const conversation = await conversations.begin();
    expect(conversation.commands.map(({ name }) => name)).toEqual(["plan"]);
  });

  it("are opened again once when the program was started anew, before the next message", async () => {
    const { conversations, methods, state, answers } = world();
    const conversation = await conversations.begin();
    answers.set("session/prompt", () => Promise.reject(new ConnectionClosed("gone")));
    conversation.send(message);
    await vi.waitFor(() => expect(conversation.isRunning).toBe(false));
    expect(conversation.entries.at(-1)).toMatchObject({ kind: "notice", action: "continue" });
    state({ kind: "restarting" });
    answers.set("session/prompt", () => Promise.resolve({ stopReason: "end_turn" }));
    void conversations.resume(conversation);
    conversation.send(message);
    await vi.waitFor(() => expect(conversation.isRunning).toBe(false));
    expect(methods()).toEqual(["session/new", "session/prompt", "session/resume", "session/prompt"]);
  });

  it.each([
    ["session/resume", new NotReady("not running")],
    ["session/resume", new ConnectionClosed("gone")],
    ["session/resume", new RpcError("no model", -32_000, null, null)],
    ["session/prompt", new NotReady("not running")],
    ["session/prompt", new RpcError("no such session", -32_002, null, null)],
  ])("keep a message that the program never got, because of %s: %s", async (method, error) => {
    const { conversations, state, answers } = world();
    const conversation = await conversations.begin();
    state({ kind: "restarting" });
    answers.set(method, () => Promise.reject(error));
    conversation.send(message);
    await vi.waitFor(() => expect(conversation.isRunning).toBe(false));
    expect(conversation.entries.map((entry) => [entry.kind, entry.kind === "notice" && entry.action])).toEqual([["notice", null]]);
    expect(conversation.queue).toEqual([message]);
  });

  it("are loaded with their titles, listed without empty ones, and known after that", async () => {
    const { conversations, methods } = world();
    expect((await conversations.list()).map(({ sessionId }) => sessionId)).toEqual(["s"]);
    const conversation = await conversations.load("s");
    expect(conversation.title).toBe("Beds");
    expect(await conversations.load("s")).toBe(conversation);
    expect(methods().filter((method) => method === "session/load")).toHaveLength(1);
  });

  it("are deleted when they are left and nothing was said", async () => {
    const { conversations, methods, answers } = world();
    await conversations.leave(await conversations.begin());
    answers.set("session/prompt", () => Promise.resolve({ stopReason: "end_turn" }));
    const conversation = await conversations.begin();
    conversation.send(message);
    await vi.waitFor(() => expect(conversation.isRunning).toBe(false));
    await conversations.leave(conversation);
    expect(methods()).toEqual(["session/new", "session/delete", "session/new", "session/prompt", "session/close"]);
  });

  it("are not deleted while they are loading, and not when a saved one is empty", async () => {
    const { conversations, calls, answers } = world();
    let loaded = (_: unknown): void => undefined;
    answers.set("session/load", () => new Promise((resolve) => (loaded = resolve)));
    const loading = conversations.load("saved");
    conversations.end();
    expect(calls.filter(([method]) => method === "session/delete")).toEqual([]);
    loaded({});
    await conversations.leave(await loading);
    expect(calls.at(-1)).toEqual(["session/close", { sessionId: "saved" }]);
    await conversations.begin();
    conversations.end();
    expect(calls.at(-1)).toEqual(["session/delete", { sessionId: "s" }]);
  });

  it("answer questions of sessions that are not open with a no", async () => {
    const { conversations } = world();
    const { signal } = new AbortController();
    expect(await conversations.asked("session/request_permission", { sessionId: "x" }, signal)).toEqual({ outcome: { outcome: "cancelled" } });
    expect(await conversations.asked("elicitation/create", {}, signal)).toEqual({ action: "cancel" });
    expect(conversations.asked("fs/read_text_file", {}, signal)).toBeNull();
  });

  it("go on with another model when it was chosen", async () => {
    const { conversations, methods } = world();
    await conversations.begin();
    const changed = vi.fn();
    conversations.onModel(changed);
    await conversations.modelChanged();
    expect([methods(), changed.mock.calls.length]).toEqual([["session/new", "session/resume"], 1]);
  });

  it("that are under way go on with another model before their next prompt", async () => {
    const { conversations, methods, answers } = world();
    const conversation = await conversations.begin();
    const ends: Array<(answer: unknown) => void> = [];
    answers.set("session/prompt", () => new Promise((resolve) => ends.push(resolve)));
    for (const text of ["One", "Two"]) conversation.send({ text, shared: [] });
    await vi.waitFor(() => expect(ends).toHaveLength(1));
    await conversations.modelChanged();
    expect(methods(), "the turn goes on").toEqual(["session/new", "session/prompt"]);
    expect(conversation.entries.at(-1)).toMatchObject({ kind: "notice", severity: "info" });
    ends[0]?.({ stopReason: "end_turn" });
    await vi.waitFor(() => expect(ends).toHaveLength(2));
    expect(methods()).toEqual(["session/new", "session/prompt", "session/resume", "session/prompt"]);
  });

  describe("with options that were chosen", () => {
    const mode = (currentValue: string) => ({ id: "mode", name: "Mode", type: "select", currentValue, options: [{ value: "ask", name: "Ask" }, { value: "read", name: "Read only" }] });
    const model = (currentValue: string, ...all: string[]) => ({ id: "model", name: "Model", type: "select", currentValue, options: all.map((value) => ({ value, name: value })) });

    async function chosen() {
      const all = world();
      const { conversations, answers, calls } = all;
      answers.set("session/new", () => Promise.resolve({ sessionId: "s", configOptions: [mode("ask"), model("small", "small", "large")] }));
      const conversation = await conversations.begin();
      answers.set("session/set_config_option", () => Promise.resolve({ configOptions: [mode("read"), model("large", "small", "large")] }));
      await conversations.setOption(conversation, "mode", "read");
      answers.set("session/resume", () => Promise.resolve({ configOptions: [mode("ask"), model("small", "small", "large")] }));
      answers.set("session/prompt", () => Promise.resolve({ stopReason: "end_turn" }));
      calls.length = 0;
      const told = () => calls.map(([method, params]) => [method, (params as { configId?: string }).configId, (params as { value?: string }).value]);
      const say = async () => {
        conversation.send(message);
        await vi.waitFor(() => expect(conversation.isRunning).toBe(false));
      };
      return { ...all, conversation, asked: told, say };
    }
    const resume = ["session/resume", undefined, undefined];
    const prompt = ["session/prompt", undefined, undefined];
    const read = ["session/set_config_option", "mode", "read"];

    it("keep them when the program was restarted", async () => {
      const { conversation, answers, asked, say, state } = await chosen();
      state({ kind: "restarting" });
      answers.set("session/set_config_option", () => Promise.resolve({ configOptions: [mode("read"), model("small", "small", "large")] }));
      await say();
      expect(asked()).toEqual([resume, read, ["session/set_config_option", "model", "large"], prompt]);
      expect(conversation.options[0]?.currentValue).toBe("read");
    });

    it("keep all but the model when another one was chosen", async () => {
      const { conversations, asked } = await chosen();
      await conversations.modelChanged();
      expect(asked()).toEqual([resume, read]);
    });

    it("keep all but a model that is not there any more", async () => {
      const { answers, asked, say, state } = await chosen();
      state({ kind: "restarting" });
      answers.set("session/resume", () => Promise.resolve({ configOptions: [mode("ask"), model("new", "new")] }));
      answers.set("session/set_config_option", () => Promise.resolve({ configOptions: [mode("read"), model("new", "new")] }));
      await say();
      expect(asked()).toEqual([resume, read, prompt]);
    });

    it("send nothing while they cannot be set, and set them before the next try", async () => {
      const { conversation, answers, asked, say, state } = await chosen();
      state({ kind: "restarting" });
      answers.set("session/set_config_option", () => Promise.reject(new Error("there is no such mode")));
      await say();
      expect(asked()).toEqual([resume, read]);
      expect([conversation.queue.length, conversation.options[0]?.currentValue]).toEqual([1, "read"]);
      answers.set("session/set_config_option", () => Promise.resolve({ configOptions: [mode("read"), model("large", "large")] }));
      conversation.queue.length = 0;
      await say();
      expect(asked().slice(2)).toEqual([resume, read, prompt]);
    });

    it("set one after the conversation is resumed", async () => {
      const { conversations, conversation, asked, state } = await chosen();
      state({ kind: "restarting" });
      await conversations.setOption(conversation, "mode", "ask");
      expect(asked()).toEqual([resume, read, ["session/set_config_option", "mode", "ask"]]);
    });
  });

  it("that begin or load while another model is chosen go on with it", async () => {
    const { conversations, methods, answers } = world();
    let [begun, loaded] = [(_: unknown): void => undefined, (_: unknown): void => undefined];
    answers.set("session/new", () => new Promise((resolve) => (begun = resolve)));
    answers.set("session/load", () => new Promise((resolve) => (loaded = resolve)));
    const [beginning, loading] = [conversations.begin(), conversations.load("saved")];
    const changed = conversations.modelChanged();
    loaded({});
    begun({ sessionId: "s" });
    await Promise.all([loading, changed]);
    await conversations.resume(await beginning);
    expect(methods().filter((method) => method === "session/resume")).toHaveLength(2);
    expect(methods().indexOf("session/load")).toBeLessThan(methods().indexOf("session/resume"));
  });

  it("are resumed again when they are cut while that is under way", async () => {
    const { conversations, methods, answers, state } = world();
    const conversation = await conversations.begin();
    state({ kind: "restarting" });
    const resumed: Array<(answer: unknown) => void> = [];
    answers.set("session/resume", () => new Promise((resolve) => resumed.push(resolve)));
    const resuming = conversations.resume(conversation);
    const changed = conversations.modelChanged();
    resumed[0]?.({});
    await vi.waitFor(() => expect(resumed).toHaveLength(2));
    resumed[1]?.({});
    await Promise.all([resuming, changed]);
    expect(methods()).toEqual(["session/new", "session/resume", "session/resume"]);
  });
});
