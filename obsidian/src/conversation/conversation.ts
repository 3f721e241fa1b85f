// One conversation: what was said, called and asked in it, and the turn that is under way. It knows no elements.

import type { AvailableCommand, CallUpdate, FormAnswer, FormRequest, PermissionAnswer, PermissionRequest, PlanEntry, PromptBlock, SessionOption, SessionUpdate } from "../agent/acp";
import type { Approval } from "../protocol";
import type { Shared } from "./context";

/** A call of a tool, with what came of it. */
export interface Call extends CallUpdate {
  /** The texts that it shows. */
  texts: string[];
}

/** The decision of the person about a question. */
export type Decision =
  | { kind: "allow" }
  /** Allow it, and do not ask again in this conversation. */
  | { kind: "always" }
  /** Ask again with other arguments. */
  | { kind: "edit"; arguments: Record<string, unknown> }
  /** Only these parts of a change, or these items of a result. */
  | { kind: "ticked"; ticked: number[] }
  | { kind: "reject"; reason: string }
  /** Reject it, and each further call of the tool in this conversation. */
  | { kind: "never" }
  /** Prepare the change again and ask again: files changed meanwhile. */
  | { kind: "again" };

/** A question about a call. It is asked again when its arguments or its parts change. */
export interface Question {
  request: PermissionRequest;
  /** The change that is asked about, as the program prepared it. */
  approval: Approval | null;
  /** Notice for the person, for example that the change was prepared again. */
  notice: string;
  /** How it ended; empty while it is open. */
  outcome: string;
  /** Grows each time that it is asked. */
  round: number;
  /** The change in the journal that was made after the approval, as soon as it is known. */
  transaction: number | null;
}

export interface Form {
  request: FormRequest;
  outcome: string;
}

export type Entry =
  /** A message that could not be sent is taken back, and is no entry any more. */
  | { kind: "person"; text: string; shared: string[]; isTakenBack: boolean }
  | { kind: "assistant"; text: string; isDone: boolean }
  | { kind: "thought"; text: string; isDone: boolean }
  | { kind: "call"; call: Call }
  | { kind: "notice"; severity: string; text: string; action: "continue" | null }
  | { kind: "plan"; entries: PlanEntry[] }
  | { kind: "question"; question: Question }
  | { kind: "form"; form: Form };

/** A message of the person, with the notes and pictures that are shared with it. */
export interface Message {
  text: string;
  shared: Shared[];
}

function blocksOf({ text, shared }: Message): PromptBlock[] {
  return [...shared.map(({ block }) => block), { type: "text", text }];
}

/** The program never got a prompt. */
export class NotSent extends Error {
  override readonly name = "NotSent";
}

/** The program ended after it got a prompt, and can continue with it. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
}

/** The outcome of a question that was approved once. */
export const APPROVED = "Approved.";

/** Why a turn ended, as it is said to the person; nothing is said of an answer. */
const STOPS: Record<string, string> = {
  cancelled: "Stopped.",
  max_tokens: "The answer reached the limit on its length.",
  max_turn_requests: "The turn reached a limit.",
  refusal: "The model refused to answer.",
};

/** The program's side of a conversation. */
export interface Line {
  /** Sends a prompt, and returns why its turn ended. Rejects with `NotSent`, `Interrupted`, or an error of the program. */
  prompt(sessionId: string, blocks: PromptBlock[]): Promise<string>;
  cancel(sessionId: string): void;
}

export class Conversation {
  readonly entries: Entry[] = [];
  commands: AvailableCommand[] = [];
  options: SessionOption[] = [];
  title = "";
  isRunning = false;
  /** Messages that are sent when the turn has ended. */
  readonly queue: Message[] = [];
  private isReplaying = false;
  private readonly calls = new Map<string, Call>();
  private readonly questions = new Map<string, { question: Question; answer: (answer: PermissionAnswer) => void }>();
  private readonly forms = new Map<Form, (answer: FormAnswer) => void>();
  /** Values for the form that the program opens after a decision, by the call. */
  private readonly prepared = new Map<string, FormAnswer>();
  private readonly listeners = new Set<(entry: Entry | null) => void>();

  constructor(
    readonly id: string,
    private readonly line: Line,
  ) {}

  /** Calls back with each entry that is new or changed, and with null for everything else; returns the end of that. */
  onChange(listener: (entry: Entry | null) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private changed(entry: Entry | null): void {
    for (const listener of [...this.listeners]) listener(entry);
  }

  private add(entry: Entry): void {
    this.finishText();
    this.entries.push(entry);
    this.changed(entry);
  }

  notice(severity: string, text: string, action: "continue" | null = null): void {
    this.add({ kind: "notice", severity, text, action });
  }

  get isEmpty(): boolean {
    return !this.entries.some(({ kind }) => kind === "person");
  }

  /** Questions that wait for the person. */
  get openQuestions(): number {
    return this.questions.size + this.forms.size;
  }

  // Updates from the program

  /** Takes a saved conversation that is told from its beginning. */
  async replay(tell: () => Promise<void>): Promise<void> {
    this.isReplaying = true;
    try {
      await tell();
    } finally {
      this.isReplaying = false;
      this.finishText();
    }
  }

  apply(update: SessionUpdate): void {
    switch (update.sessionUpdate) {
      case "user_message_chunk":
        // The message that the person just sent is shown already.
        if (this.isReplaying) this.add({ kind: "person", text: update.content.text ?? "", shared: [], isTakenBack: false });
        return;
      case "agent_message_chunk":
        return this.say("assistant", update.content.text ?? "");
      case "agent_thought_chunk":
        return this.say("thought", update.content.text ?? "");
      case "tool_call":
      case "tool_call_update":
        return this.called(update);
      case "plan": {
        // A plan replaces the one before of the same turn.
        const last = this.entries.findLast((entry) => entry.kind === "plan" || entry.kind === "person");
        if (last?.kind !== "plan") return this.add({ kind: "plan", entries: update.entries });
        last.entries = update.entries;
        return this.changed(last);
      }
      case "available_commands_update":
        this.commands = update.availableCommands;
        return this.changed(null);
      case "config_option_update":
        return this.setOptions(update.configOptions);
      case "current_mode_update": {
        const mode = this.options.find(({ id }) => id === "mode");
        if (mode !== undefined) mode.currentValue = update.currentModeId;
        return this.changed(null);
      }
      case "session_info_update":
        this.title = update.title ?? this.title;
        return this.changed(null);
      case "notice":
        return this.notice(update.severity, [update.title, update.description ?? ""].filter((text) => text !== "").join(" "), update.title.includes("`/continue`") ? "continue" : null);
      case "compaction_update":
        return update.status === "failed"
          ? this.notice("warning", `The conversation could not be made shorter: ${update.error ?? "the reason is not known"}`)
          : this.notice("info", "The conversation was long for the model and was made shorter.");
    }
  }

  setOptions(options: SessionOption[]): void {
    this.options = options;
    this.changed(null);
  }

  private say(kind: "assistant" | "thought", text: string): void {
    if (text === "") return;
    const last = this.entries[this.entries.length - 1];
    if (last?.kind === kind && !last.isDone) {
      last.text += text;
      return this.changed(last);
    }
    if (text.trim() !== "") this.add({ kind, text: text.trimStart(), isDone: false });
  }

  /** The text that was being said is complete. */
  private finishText(): void {
    const last = this.entries[this.entries.length - 1];
    if ((last?.kind !== "assistant" && last?.kind !== "thought") || last.isDone) return;
    last.isDone = true;
    this.changed(last);
  }

  private called(update: CallUpdate): void {
    const known = this.calls.get(update.toolCallId);
    const call: Call = known ?? { toolCallId: update.toolCallId, texts: [] };
    for (const [name, value] of Object.entries(update as unknown as Record<string, unknown>)) {
      if (value !== null && value !== undefined && name !== "content") Object.assign(call, { [name]: value });
    }
    if (update.content) call.texts = textsOf(update.content);
    this.calls.set(update.toolCallId, call);
    this.ended(update);
    if (known === undefined) return this.add({ kind: "call", call });
    const entry = this.entries.find((entry) => entry.kind === "call" && entry.call === call);
    if (entry !== undefined) this.changed(entry);
  }

  /** Stores the transaction of a call at the question about it. */
  private ended({ toolCallId, _meta }: CallUpdate): void {
    const transaction = (_meta?.vault as { transaction?: unknown } | null | undefined)?.transaction;
    const entry = this.entries.findLast((entry) => entry.kind === "question" && entry.question.request.toolCall.toolCallId === toolCallId);
    if (typeof transaction !== "number" || entry?.kind !== "question") return;
    entry.question.transaction = transaction;
    this.changed(entry);
  }

  // Messages from the person

  /** Sends a message, or keeps it until the turn has ended. */
  send(message: Message): void {
    if (this.isRunning) {
      this.queue.push(message);
      return this.changed(null);
    }
    void this.turn(message);
  }

  private async turn(message: Message): Promise<void> {
    this.isRunning = true;
    const entry = { kind: "person" as const, text: message.text, shared: message.shared.map(({ label }) => label), isTakenBack: false };
    this.add(entry);
    let reason = "";
    try {
      reason = await this.line.prompt(this.id, blocksOf(message));
      const said = STOPS[reason];
      if (said !== undefined) this.notice("info", said);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      if (error instanceof NotSent) this.takeBack(entry, message, text);
      else this.notice("error", text, error instanceof Interrupted ? "continue" : null);
    }
    this.isRunning = false;
    this.finishText();
    this.withdrawAll();
    // After a stop or a failure the person decides what is sent next.
    const next = reason === "end_turn" ? this.queue.shift() : undefined;
    if (next !== undefined) return this.turn(next);
    this.changed(null);
  }

  /** Keeps a message that was not sent as the next one. */
  private takeBack(entry: Extract<Entry, { kind: "person" }>, message: Message, why: string): void {
    entry.isTakenBack = true;
    this.entries.splice(this.entries.indexOf(entry), 1);
    this.queue.unshift(message);
    this.changed(entry);
    this.notice("error", `Your message was not sent, and is kept below: ${why}`);
  }

  stop(): void {
    if (this.isRunning) this.line.cancel(this.id);
  }

  // Questions from the program

  ask(request: PermissionRequest, signal: AbortSignal): Promise<PermissionAnswer> {
    const id = request.toolCall.toolCallId;
    const approval = approvalOf(request);
    this.finishText();
    const before = this.entries.findLast((entry) => entry.kind === "question" && entry.question.request.toolCall.toolCallId === id);
    const isAgain = before?.kind === "question" && before.question.outcome === "";
    const question = isAgain ? before.question : { request, approval, notice: "", outcome: "", round: 0, transaction: null };
    question.request = request;
    question.approval = approval;
    question.round++;
    // It is asked again as it was, because what was wanted cannot be done.
    if (approval?.problem) question.notice = "";
    return new Promise((resolve) => {
      const answer = (given: PermissionAnswer) => {
        this.questions.delete(id);
        resolve(given);
      };
      this.questions.set(id, { question, answer });
      signal.addEventListener("abort", () => this.withdraw(id), { once: true });
      if (isAgain) this.changed(before);
      else this.add({ kind: "question", question });
      this.changed(null);
    });
  }

  private withdraw(id: string): void {
    const open = this.questions.get(id);
    if (open === undefined) return;
    this.end(open.question, "Not decided.");
    open.answer({ outcome: { outcome: "cancelled" } });
  }

  /** Whatever is still asked when a turn is over is not asked any more. */
  private withdrawAll(): void {
    for (const id of [...this.questions.keys()]) this.withdraw(id);
    for (const entry of this.entries) {
      if (entry.kind === "question" && entry.question.outcome === "") this.end(entry.question, "Not decided.");
    }
    for (const form of [...this.forms.keys()]) this.fill(form, { action: "cancel" });
    this.prepared.clear();
  }

  private end(question: Question, outcome: string): void {
    question.outcome = outcome;
    const entry = this.entries.find((entry) => entry.kind === "question" && entry.question === question);
    this.changed(entry ?? null);
  }

  /** Decides a question that is open. Returns whether it was. */
  decide(question: Question, decision: Decision): boolean {
    const id = question.request.toolCall.toolCallId;
    const open = this.questions.get(id);
    if (open?.question !== question) return false;
    const { optionId, form, outcome, notice } = answerTo(question, decision);
    if (!question.request.options.some((option) => option.optionId === optionId)) return false;
    if (form !== null) this.prepared.set(id, form);
    question.notice = notice;
    if (outcome !== "") this.end(question, outcome);
    open.answer({ outcome: { outcome: "selected", optionId } });
    this.changed(null);
    return true;
  }

  form(request: FormRequest, signal: AbortSignal): Promise<FormAnswer> {
    const prepared = this.prepared.get(request.toolCallId ?? "");
    if (prepared !== undefined) {
      this.prepared.delete(request.toolCallId ?? "");
      return Promise.resolve(prepared);
    }
    const form: Form = { request, outcome: "" };
    return new Promise((resolve) => {
      this.forms.set(form, resolve);
      signal.addEventListener("abort", () => this.fill(form, { action: "cancel" }), { once: true });
      this.add({ kind: "form", form });
    });
  }

  /** Answers a form that is open. */
  fill(form: Form, answer: FormAnswer): void {
    const resolve = this.forms.get(form);
    if (resolve === undefined) return;
    this.forms.delete(form);
    form.outcome = answer.action === "accept" ? "Sent." : "Closed.";
    resolve(answer);
    this.changed(this.entries.find((entry) => entry.kind === "form" && entry.form === form) ?? null);
  }
}

/** The texts of a call, without the code fences that protect other clients. */
function textsOf(content: NonNullable<CallUpdate["content"]>): string[] {
  return content.flatMap((piece) => {
    const text = "content" in piece ? piece.content.text : undefined;
    return text === undefined ? [] : [text.replace(/^(`{3,})\n([\s\S]*)\n\1$/, "$2")];
  });
}

function approvalOf({ toolCall }: PermissionRequest): Approval | null {
  const approval = toolCall._meta?.vault as Partial<Approval> | null | undefined;
  const isWhole = typeof approval?.risk === "string" && [approval.files, approval.folders, approval.notices, approval.parts, approval.items].every(Array.isArray);
  return isWhole ? (approval as Approval) : null;
}

interface Answered {
  optionId: string;
  /** The answer to the form that the program opens next. */
  form: FormAnswer | null;
  /** Empty if it is asked again. */
  outcome: string;
  notice: string;
}

/** How a decision is told to the program. */
function answerTo({ approval }: Question, decision: Decision): Answered {
  const answered = (optionId: string, outcome: string, form: FormAnswer | null = null, notice = ""): Answered => ({ optionId, form, outcome, notice });
  const ticks = (ticked: number[]): FormAnswer => ({ action: "accept", content: { ticked: ticked.map(String) } });
  switch (decision.kind) {
    case "allow":
      return answered("allow", APPROVED);
    case "always":
      return answered("allow_always", "Approved for this conversation.");
    case "edit":
      return answered("edit", "", { action: "accept", content: decision.arguments }, "With your arguments:");
    case "ticked":
      // Of a result the ticked items are shared; of a change what is left is shown again.
      return (approval?.items.length ?? 0) > 0
        ? answered("pick", `Shared ${decision.ticked.length} of ${approval?.items.length ?? 0}.`, ticks(decision.ticked))
        : answered("pick", "", ticks(decision.ticked), "Only what you ticked:");
    case "reject":
      return decision.reason === "" ? answered("reject", "Rejected.") : answered("reject_and_say", `Rejected: ${decision.reason}`, { action: "accept", content: { reason: decision.reason } });
    case "never":
      return answered("reject_always", "Rejected for this conversation.");
    case "again":
      return answered("prepare_again", "", null, "The notes have changed since this was shown. This is the change as it would be now:");
  }
}
