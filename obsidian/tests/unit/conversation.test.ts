import { describe, expect, it, vi } from "vitest";
import type { PermissionRequest, SessionUpdate } from "../../src/agent/acp";
import { Conversation, Interrupted, NotSent, type Entry, type Question } from "../../src/conversation/conversation";
import { fileUri, pathInVault, selectionToShare } from "../../src/conversation/context";
import { privacyNote } from "../../src/views/conversation-view";

const OPTIONS = ["allow", "allow_always", "edit", "pick", "prepare_again", "reject", "reject_and_say", "reject_always"];
const APPROVAL = { tool: "edit_note", question: "Edit?", risk: "write", undo: "yes", files: [], folders: [], notices: [], parts: [], items: [] };

function request(id: string, more: object = {}): PermissionRequest {
  return {
    sessionId: "s",
    toolCall: { toolCallId: id, _meta: { vault: { ...APPROVAL, ...more } } },
    options: OPTIONS.map((optionId) => ({ optionId, name: optionId, kind: "" })),
  };
}

function start() {
  const prompts: Array<{ text: string; end: (reason: string) => void; fail: (error: Error) => void }> = [];
  const cancel = vi.fn();
  const conversation = new Conversation("s", {
    prompt: (_, blocks) => new Promise((end, fail) => prompts.push({ text: JSON.stringify(blocks), end, fail })),
    cancel,
  });
  const said = (text: string) => ({ text, shared: [] });
  const kinds = () => conversation.entries.map(({ kind }) => kind);
  const last = <Kind extends Entry["kind"]>(kind: Kind) => conversation.entries.findLast((entry) => entry.kind === kind) as Extract<Entry, { kind: Kind }>;
  const asked = (id: string, more?: object) => {
    const abort = new AbortController();
    const answer = conversation.ask(request(id, more), abort.signal);
    return { answer, abort, question: last("question").question };
  };
  return { conversation, prompts, cancel, said, kinds, last, asked };
}

const chunk = (text: string): SessionUpdate => ({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });

describe("a conversation", () => {
  it("joins what streams, until something else comes", () => {
    const { conversation, kinds, last } = start();
    for (const text of ["\n", "He", "llo"]) conversation.apply(chunk(text));
    expect(last("assistant")).toMatchObject({ text: "Hello", isDone: false });
    conversation.apply({ sessionUpdate: "tool_call", toolCallId: "1", title: "read_note `a.md`", status: "pending" });
    conversation.apply({ sessionUpdate: "tool_call_update", toolCallId: "1", status: "completed", content: [{ type: "content", content: { type: "text", text: "```\nx\n```" } }] });
    conversation.apply(chunk("Bye"));
    expect(kinds()).toEqual(["assistant", "call", "assistant"]);
    expect(last("call").call).toMatchObject({ title: "read_note `a.md`", status: "completed", texts: ["x"] });
  });

  it("shows the steps of a plan once for each turn, as they are now", async () => {
    const { conversation, prompts, said, kinds, last } = start();
    const plan = (...statuses: Array<"pending" | "completed">): SessionUpdate => ({ sessionUpdate: "plan", entries: statuses.map((status) => ({ content: "step", status })) });
    conversation.send(said("/plan x"));
    conversation.apply(plan("pending", "pending"));
    conversation.apply(plan("completed"));
    expect([kinds(), last("plan").entries.length]).toEqual([["person", "plan"], 1]);
    prompts[0]?.end("end_turn");
    await vi.waitFor(() => expect(conversation.isRunning).toBe(false));
    conversation.send(said("/plan y"));
    conversation.apply(plan("pending"));
    expect(kinds()).toEqual(["person", "plan", "person", "plan"]);
  });

  it("ignores what it does not know", () => {
    const { conversation, kinds } = start();
    conversation.apply({ sessionUpdate: "usage_update" } as unknown as SessionUpdate);
    expect(kinds()).toEqual([]);
  });

  it("sends what is typed meanwhile after an answer, and not after a stop", async () => {
    const { conversation, prompts, said, cancel } = start();
    for (const text of ["one", "two", "three"]) conversation.send(said(text));
    expect([prompts.length, conversation.queue.length, conversation.isRunning]).toEqual([1, 2, true]);
    prompts[0]?.end("end_turn");
    await vi.waitFor(() => expect(prompts).toHaveLength(2));
    conversation.stop();
    expect(cancel).toHaveBeenCalledWith("s");
    prompts[1]?.end("cancelled");
    await vi.waitFor(() => expect(conversation.isRunning).toBe(false));
    expect([prompts.length, conversation.queue.length]).toEqual([2, 1]);
    expect(conversation.entries.findLast(({ kind }) => kind === "notice")).toMatchObject({ text: "Stopped." });
  });

  it.each([
    [new Interrupted("it ended"), "continue"],
    [new Error("the model is busy"), null],
  ])("keeps the text of a turn that failed, and offers to continue what was interrupted: %s", async (error, action) => {
    const { conversation, prompts, said, kinds, last } = start();
    conversation.send(said("one"));
    conversation.apply(chunk("Half an"));
    prompts[0]?.fail(error);
    await vi.waitFor(() => expect(conversation.isRunning).toBe(false));
    expect(kinds()).toEqual(["person", "assistant", "notice"]);
    expect([last("assistant").text, last("assistant").isDone]).toEqual(["Half an", true]);
    expect(last("notice")).toMatchObject({ text: error.message, action });
  });

  it("keeps a message that was not sent as the next one, with what is shared with it", async () => {
    const { conversation, prompts, said, kinds, last } = start();
    const item = selectionToShare("/v", { path: "a.md", text: "x", from: 3, to: 3 });
    const changed: Array<Entry | null> = [];
    conversation.onChange((entry) => changed.push(entry));
    conversation.send({ text: "one", shared: [item] });
    const person = last("person");
    conversation.send(said("two"));
    prompts[0]?.fail(new NotSent("it is not running"));
    await vi.waitFor(() => expect(conversation.isRunning).toBe(false));
    expect([kinds(), person.isTakenBack, changed.includes(person), conversation.isEmpty]).toEqual([["notice"], true, true, true]);
    expect(last("notice")).toMatchObject({ action: null, text: expect.stringContaining("was not sent") as string });
    expect(conversation.queue.map(({ text, shared }) => [text, shared])).toEqual([["one", [item]], ["two", []]]);
    const [next] = conversation.queue.splice(0, 1);
    if (next !== undefined) conversation.send(next);
    expect(prompts[1]?.text).toBe(JSON.stringify([item.block, { type: "text", text: "one" }]));
    expect(last("person").shared).toEqual([item.label]);
  });

  it("shows the person's words once, also when it is told again", async () => {
    const { conversation, kinds } = start();
    const heard: SessionUpdate = { sessionUpdate: "user_message_chunk", content: { type: "text", text: "Hi" } };
    conversation.apply(heard);
    expect(kinds()).toEqual([]);
    await conversation.replay(() => {
      conversation.apply(heard);
      conversation.apply(chunk("Hello"));
      return Promise.resolve();
    });
    expect(kinds()).toEqual(["person", "assistant"]);
  });
});

describe("a question", () => {
  const chosen = (optionId: string) => ({ outcome: { outcome: "selected", optionId } });

  it.each([
    [{ kind: "allow" }, "allow", "Approved."],
    [{ kind: "always" }, "allow_always", "Approved for this conversation."],
    [{ kind: "reject", reason: "" }, "reject", "Rejected."],
    [{ kind: "never" }, "reject_always", "Rejected for this conversation."],
  ] as const)("is decided: %j", async (decision, option, outcome) => {
    const { conversation, asked } = start();
    const { answer, question } = asked("1");
    expect(conversation.decide(question, decision)).toBe(true);
    expect(await answer).toEqual(chosen(option));
    expect(question.outcome).toBe(outcome);
    expect(conversation.decide(question, decision), "once").toBe(false);
  });

  it("is answered with a form where the program opens one", async () => {
    const { conversation, asked } = start();
    const filled = async (question: Question) => conversation.form({ toolCallId: question.request.toolCall.toolCallId, message: "" }, new AbortController().signal);
    const reason = asked("1");
    conversation.decide(reason.question, { kind: "reject", reason: "Not there" });
    expect(await reason.answer).toEqual(chosen("reject_and_say"));
    expect(await filled(reason.question)).toEqual({ action: "accept", content: { reason: "Not there" } });
    const ticked = asked("2", { items: ["a", "b", "c"] });
    conversation.decide(ticked.question, { kind: "ticked", ticked: [0, 2] });
    expect(await ticked.answer).toEqual(chosen("pick"));
    expect(await filled(ticked.question)).toEqual({ action: "accept", content: { ticked: ["0", "2"] } });
    expect(ticked.question.outcome).toBe("Shared 2 of 3.");
  });

  it("is asked again in the same place after an edit, and stays open", async () => {
    const { conversation, asked, kinds } = start();
    const first = asked("1");
    conversation.decide(first.question, { kind: "edit", arguments: { path: "b.md" } });
    expect(await first.answer).toEqual(chosen("edit"));
    const again = asked("1");
    expect(again.question).toBe(first.question);
    expect([again.question.round, again.question.notice, again.question.outcome]).toEqual([2, "With your arguments:", ""]);
    expect(kinds()).toEqual(["question"]);
  });

  it("takes no decision that was not offered", () => {
    const { conversation, asked } = start();
    const { question } = asked("1");
    question.request.options = question.request.options.filter(({ optionId }) => optionId !== "allow_always");
    expect(conversation.decide(question, { kind: "always" })).toBe(false);
    expect(question.outcome).toBe("");
  });

  it("is closed when it is withdrawn", async () => {
    const { asked } = start();
    const { answer, abort, question } = asked("1");
    abort.abort();
    expect(await answer).toEqual({ outcome: { outcome: "cancelled" } });
    expect(question.outcome).toBe("Not decided.");
  });

  it("without a readable approval is asked about all the same", () => {
    const { asked } = start();
    expect(asked("1", { files: null }).question.approval).toBeNull();
  });
});

describe("what is shared", () => {
  it("has the address of its file and its lines", () => {
    expect(fileUri("/home/ada/My notes", "a b/c#d.md")).toBe("file:///home/ada/My%20notes/a%20b/c%23d.md");
    expect(fileUri("C:\\Notes\\", "a.md")).toBe("file:///C:/Notes/a.md");
    expect(pathInVault("/v", "/v/a/b.md")).toBe("a/b.md");
    expect(pathInVault("C:\\v", "C:\\v\\a\\b.md")).toBe("a/b.md");
    expect(pathInVault("/v", "/vault/b.md")).toBeNull();
    expect(selectionToShare("/v", { path: "a.md", text: "x\ny", from: 3, to: 4 })).toMatchObject({ key: "file:///v/a.md#L3:4", label: "Selection: lines 3 to 4 of a (3 characters)", preview: "x\ny" });
  });

  it("is said to leave the computer or to stay on it", () => {
    const state = { provider: "openai", model: "x", allowedModels: [], host: "api.openai.com", key: null, problem: null, file: "", fixed: [], providers: [], policy: [], policyFile: "" };
    expect(privacyNote(state)).toContain("are sent to api.openai.com (x of openai)");
    expect(privacyNote({ ...state, host: null })).toContain("Nothing leaves it");
    // A turn that is under way goes on whatever is wrong with the settings by now.
    expect(privacyNote({ ...state, problem: "no key" })).toContain("are sent to api.openai.com");
    expect(privacyNote({ ...state, provider: null, model: null, host: "proxy.test" })).toContain("are sent to proxy.test.");
    expect(privacyNote({ ...state, provider: null, host: null })).toBe("x runs on this computer. Nothing leaves it.");
    expect(privacyNote({ ...state, provider: null, model: null, host: null })).toContain("Nothing leaves it");
    expect(privacyNote({ ...state, provider: null, model: null, host: null, problem: "no model is chosen" })).toBe("No conversation can begin: no model is chosen");
  });
});
