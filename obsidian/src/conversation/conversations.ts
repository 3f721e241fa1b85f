// The open conversations of the plugin: what the program tells and asks goes to the one that it is about.

import type { FormRequest, PermissionRequest, PromptBlock, SessionInfo, SessionUpdate } from "../agent/acp";
import type { Agent } from "../agent/process";
import { NotReady } from "../agent/process";
import { ConnectionClosed, RpcError, type Client } from "../agent/rpc";
import { Conversation, Interrupted, NotSent } from "./conversation";

/** Sessions of the list that are read at most. */
const MOST_SESSIONS = 200;

/** The codes with which a program refuses a prompt: invalid request, invalid parameters, no such session. */
const REFUSALS = new Set([-32_600, -32_602, -32_002]);

export class Conversations implements Client {
  private readonly open = new Map<string, Conversation>();
  private readonly listeners = new Set<() => void>();
  /** Conversations that the running program does not know, and those that it is told of at the moment. */
  private readonly cut = new Set<string>();
  private readonly resuming = new Map<string, Promise<void>>();
  /** Conversations that this plugin began. Saved ones are never deleted by themselves. */
  private readonly begun = new Set<string>();
  /** Sessions that are begun at the moment, whose ids are not known yet. */
  private beginning = 0;
  /** What was told of a session before its id was known. */
  private early: Array<[string, SessionUpdate]> = [];

  constructor(private readonly agent: Agent) {
    agent.client = this;
    // A program that was started anew knows none of the conversations.
    agent.onState(({ kind }) => {
      if (kind !== "ready") for (const id of this.open.keys()) this.cut.add(id);
    });
  }

  asked(method: string, params: unknown, signal: AbortSignal): Promise<unknown> | null {
    if (method === "session/request_permission") {
      const request = params as PermissionRequest;
      const answer = this.open.get(request.sessionId)?.ask(request, signal);
      return answer ?? Promise.resolve({ outcome: { outcome: "cancelled" } });
    }
    if (method === "elicitation/create") {
      const request = params as FormRequest;
      const answer = this.open.get(request.sessionId ?? "")?.form(request, signal);
      return answer ?? Promise.resolve({ action: "cancel" });
    }
    return null;
  }

  told(method: string, params: unknown): void {
    if (method !== "session/update") return;
    const { sessionId, update } = params as { sessionId: string; update: SessionUpdate };
    const conversation = this.open.get(sessionId);
    if (conversation !== undefined) conversation.apply(update);
    else if (this.beginning > 0) this.early.push([sessionId, update]);
  }

  private add(id: string): Conversation {
    const conversation = new Conversation(id, {
      prompt: (sessionId, blocks) => this.prompt(sessionId, blocks),
      cancel: (sessionId) => this.agent.cancelTurn(sessionId),
    });
    this.open.set(id, conversation);
    return conversation;
  }

  private catchUp(conversation: Conversation): void {
    for (const [id, update] of this.early) if (id === conversation.id) conversation.apply(update);
    this.early = this.early.filter(([id]) => id !== conversation.id);
  }

  private async prompt(sessionId: string, blocks: PromptBlock[]): Promise<string> {
    const conversation = this.open.get(sessionId);
    try {
      if (conversation !== undefined) await this.resume(conversation);
    } catch (error) {
      throw new NotSent(reasonOf(error));
    }
    try {
      return (await this.agent.call("session/prompt", { sessionId, prompt: blocks })).stopReason;
    } catch (error) {
      if (error instanceof NotReady || (error instanceof RpcError && REFUSALS.has(error.code))) throw new NotSent(reasonOf(error));
      if (error instanceof ConnectionClosed) throw new Interrupted("vault-agent ended in the middle of this turn. It is started again; what was said so far is kept.");
      throw error;
    }
  }

  private get where(): { cwd: string; mcpServers: [] } {
    return { cwd: this.agent.vault, mcpServers: [] };
  }

  /** Begins a conversation. */
  async begin(): Promise<Conversation> {
    this.beginning++;
    try {
      const { sessionId, configOptions } = await this.agent.call("session/new", this.where);
      const conversation = this.add(sessionId);
      this.begun.add(sessionId);
      conversation.options = configOptions ?? [];
      this.catchUp(conversation);
      return conversation;
    } finally {
      this.beginning--;
    }
  }

  /** Opens a saved conversation, with all that was said in it. */
  async load(sessionId: string): Promise<Conversation> {
    const known = this.open.get(sessionId);
    if (known !== undefined) return known;
    const conversation = this.add(sessionId);
    try {
      await conversation.replay(async () => {
        const { configOptions } = await this.agent.call("session/load", { sessionId, ...this.where });
        conversation.options = configOptions ?? [];
      });
    } catch (error) {
      this.open.delete(sessionId);
      throw error;
    }
    const saved = (await this.list().catch(() => [])).find((session) => session.sessionId === sessionId);
    conversation.title = saved?.title ?? "";
    return conversation;
  }

  /** Opens a conversation again if its program was started anew. What is shown of it stays. */
  resume(conversation: Conversation): Promise<void> {
    if (!this.cut.has(conversation.id)) return Promise.resolve();
    const known = this.resuming.get(conversation.id);
    if (known !== undefined) return known;
    const resuming = this.reopen(conversation).finally(() => this.resuming.delete(conversation.id));
    this.resuming.set(conversation.id, resuming);
    return resuming;
  }

  private async reopen(conversation: Conversation): Promise<void> {
    const { configOptions } = await this.agent.call("session/resume", { sessionId: conversation.id, ...this.where });
    this.cut.delete(conversation.id);
    conversation.options = configOptions ?? [];
  }

  /** Opens all conversations again with the model that was chosen; those under way go on with theirs. */
  async modelChanged(): Promise<void> {
    for (const conversation of [...this.open.values()]) {
      if (!conversation.isRunning) await this.reopen(conversation).catch((error: unknown) => conversation.notice("error", reasonOf(error)));
    }
    for (const listener of [...this.listeners]) listener();
  }

  /** Calls back when another model was chosen; returns the end of that. */
  onModel(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  async setOption(conversation: Conversation, configId: string, value: string): Promise<void> {
    const { configOptions } = await this.agent.call("session/set_config_option", { sessionId: conversation.id, configId, value });
    conversation.options = configOptions;
  }

  /** The saved conversations of the vault in which something was said, newest first. */
  async list(): Promise<SessionInfo[]> {
    const found: SessionInfo[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.agent.call("session/list", { cwd: this.agent.vault, ...(cursor === undefined ? {} : { cursor }) });
      found.push(...page.sessions.filter(({ title }) => (title ?? "") !== ""));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined && found.length < MOST_SESSIONS);
    return found;
  }

  /** Whether a conversation was begun and nothing was said in it. One that is still loading looks as if it were empty. */
  private isUnused({ id, isEmpty }: Conversation): boolean {
    return isEmpty && this.begun.has(id);
  }

  /** Closes a conversation; one that was begun and in which nothing was said is deleted. */
  async leave(conversation: Conversation): Promise<void> {
    this.open.delete(conversation.id);
    const method = this.isUnused(conversation) ? "session/delete" : "session/close";
    await this.agent.call(method, { sessionId: conversation.id }).catch(() => undefined);
  }

  /** Deletes conversations that were begun and in which nothing was said, as far as there is time for it. */
  end(): void {
    for (const conversation of [...this.open.values()]) if (this.isUnused(conversation)) void this.leave(conversation);
  }

  async delete(sessionId: string): Promise<void> {
    this.open.delete(sessionId);
    await this.agent.call("session/delete", { sessionId });
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
