// The open conversations of the plugin: what the program tells and asks goes to the one that it is about.

import type { FormRequest, PermissionRequest, PromptBlock, SessionInfo, SessionOption, SessionUpdate } from "../agent/acp";
import type { Agent } from "../agent/process";
import { NotReady } from "../agent/process";
import { ConnectionClosed, RpcError, type Client } from "../agent/rpc";
import { Conversation, Interrupted, NotSent } from "./conversation";

/** Sessions of the list that are read at most. */
const MOST_SESSIONS = 200;

/** The option that chooses the model. */
const MODEL = "model";

/** The codes with which a program refuses a prompt: invalid request, invalid parameters, no such session. */
const REFUSALS = new Set([-32_600, -32_602, -32_002]);

export class Conversations implements Client {
  private readonly open = new Map<string, Conversation>();
  private readonly listeners = new Set<() => void>();
  /**
   * Conversations to resume before their next prompt, and whether with their own model: the program was restarted, or
   * another model was chosen.
   */
  private readonly cut = new Map<string, boolean>();
  /** Conversations that are loaded or resumed at the moment. */
  private readonly opening = new Map<string, Promise<void>>();
  /** How often another model was chosen. */
  private models = 0;
  /** Conversations that this plugin began. Saved ones are never deleted by themselves. */
  private readonly begun = new Set<string>();
  /** Sessions that are begun at the moment, whose ids are not known yet. */
  private beginning = 0;
  /** Updates of sessions that arrived before the id of the session. */
  private early: Array<[string, SessionUpdate]> = [];

  constructor(private readonly agent: Agent) {
    agent.client = this;
    // A program that was started again knows none of the conversations.
    agent.onState(({ kind }) => {
      if (kind !== "ready") for (const id of this.open.keys()) this.cut.set(id, this.cut.get(id) ?? true);
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
    const { models } = this;
    try {
      const { sessionId, configOptions } = await this.agent.call("session/new", this.where);
      const conversation = this.add(sessionId);
      this.begun.add(sessionId);
      // It may have begun with the model before.
      if (models !== this.models) this.cut.set(sessionId, false);
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
      await this.track(
        sessionId,
        conversation.replay(async () => {
          const { configOptions } = await this.agent.call("session/load", { sessionId, ...this.where });
          conversation.options = configOptions ?? [];
        }),
      );
    } catch (error) {
      this.forget(sessionId);
      throw error;
    }
    const saved = (await this.list().catch(() => [])).find((session) => session.sessionId === sessionId);
    conversation.title = saved?.title ?? "";
    return conversation;
  }

  /** Remembers that a conversation is being opened, until it is. */
  private track(id: string, opening: Promise<void>): Promise<void> {
    const tracked = opening.finally(() => this.opening.delete(id));
    this.opening.set(id, tracked);
    return tracked;
  }

  /** Opens a conversation again if its program was restarted or another model was chosen. Its entries stay. */
  resume(conversation: Conversation): Promise<void> {
    const known = this.opening.get(conversation.id);
    // Meanwhile it can have been cut again.
    if (known !== undefined) return known.then(() => this.resume(conversation));
    return this.cut.has(conversation.id) ? this.track(conversation.id, this.reopen(conversation)) : Promise.resolve();
  }

  private async reopen(conversation: Conversation): Promise<void> {
    const { id } = conversation;
    const keepsModel = this.cut.get(id) ?? true;
    const chosen = conversation.options.filter((option) => option.id !== MODEL || keepsModel).map((option) => ({ configId: option.id, value: option.currentValue }));
    this.cut.delete(id);
    try {
      conversation.setOptions(await this.resumed(id, chosen));
    } catch (error) {
      this.cut.set(id, (this.cut.get(id) ?? true) && keepsModel);
      throw error;
    }
  }

  /** Resumes a session, which begins with the defaults, and sets again what was chosen, such as to only read notes. */
  private async resumed(sessionId: string, chosen: Array<{ configId: string; value: string }>): Promise<SessionOption[]> {
    let options = (await this.agent.call("session/resume", { sessionId, ...this.where })).configOptions ?? [];
    for (const { configId, value } of chosen) {
      const option = options.find(({ id }) => id === configId);
      if (option?.currentValue === value) continue;
      // The settings name another model by now, which was chosen after this one.
      if (configId === MODEL && option?.options.some((choice) => choice.value === value) !== true) continue;
      options = (await this.agent.call("session/set_config_option", { sessionId, configId, value })).configOptions;
    }
    return options;
  }

  /** Has all conversations go on with the model that was chosen: idle ones now, those under way before their next prompt. */
  async modelChanged(): Promise<void> {
    this.models++;
    const all = [...this.open.values()];
    for (const { id } of all) this.cut.set(id, false);
    await Promise.all(
      all.map(async (conversation) => {
        if (conversation.isRunning) return conversation.notice("info", "This turn ends with the model that it began with. Your next message goes to the one that you chose.");
        await this.resume(conversation).catch((error: unknown) => conversation.notice("error", reasonOf(error)));
      }),
    );
    for (const listener of [...this.listeners]) listener();
  }

  /** Calls back when another model was chosen; returns the end of that. */
  onModel(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  async setOption(conversation: Conversation, configId: string, value: string): Promise<void> {
    const opening = this.opening.get(conversation.id);
    if (opening !== undefined) await opening;
    // A turn under way keeps its session, and what is set in it.
    else if (!conversation.isRunning) await this.resume(conversation);
    const { configOptions } = await this.agent.call("session/set_config_option", { sessionId: conversation.id, configId, value });
    conversation.setOptions(configOptions);
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
    this.forget(conversation.id);
    const method = this.isUnused(conversation) ? "session/delete" : "session/close";
    await this.agent.call(method, { sessionId: conversation.id }).catch(() => undefined);
  }

  /** Deletes conversations that were begun and in which nothing was said, as far as there is time for it. */
  end(): void {
    for (const conversation of [...this.open.values()]) if (this.isUnused(conversation)) void this.leave(conversation);
  }

  private forget(id: string): void {
    this.open.delete(id);
    this.cut.delete(id);
  }

  async delete(sessionId: string): Promise<void> {
    this.forget(sessionId);
    await this.agent.call("session/delete", { sessionId });
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
