// The conversation with the assistant: what is said as it streams, what is asked, and the field for the next message.

import { Component, type ViewStateResult, type WorkspaceLeaf } from "obsidian";
import { NO_MODEL } from "../agent/acp";
import { Cancelled, RpcError } from "../agent/rpc";
import type { Conversation, Entry, Message } from "../conversation/conversation";
import type { Conversations } from "../conversation/conversations";
import type { AppHost } from "../host";
import type { ModelStateResult } from "../protocol";
import { AgentView, type ViewServices } from "./agent-view";
import { messageOf } from "./approval-modal";
import { Composer } from "./composer";
import { showEntry } from "./entries";
import { ago, visible } from "./text";

export const CONVERSATION_VIEW = "vault-agent-conversation";

const OPEN_CARD = ".vault-agent-card:not(.is-decided)";

/** So near to the end the log follows what is added. */
const NEAR_END = 80;

export interface ConversationServices extends ViewServices {
  conversations: Conversations;
  host: AppHost;
  openSearch(): void;
}

/** Where the person's words and notes go, in a sentence. A host is named whatever else is missing. */
export function privacyNote({ provider, model, host, problem }: ModelStateResult): string {
  const names = [model, provider].filter((name) => (name ?? "") !== "");
  if (host !== null && host !== undefined) {
    const of = names.length === 0 ? "" : ` (${names.join(" of ")})`;
    return `Your messages, what you tick, and what the assistant finds and reads in your notes are sent to ${host}${of}.`;
  }
  if ((problem ?? "") !== "") return `No conversation can begin: ${problem}`;
  const name = model ?? provider ?? "The model";
  const by = provider === null || provider === undefined ? "" : ` (${provider})`;
  return `${name}${by} runs on this computer. Nothing leaves it.`;
}

export class ConversationView extends AgentView {
  private titleEl!: HTMLElement;
  private optionsEl!: HTMLElement;
  private sessionsEl!: HTMLElement;
  private noModelEl!: HTMLElement;
  private logEl!: HTMLElement;
  private queueEl!: HTMLElement;
  private statusEl!: HTMLElement;
  private privacyEl!: HTMLElement;
  private composer!: Composer;
  private conversation: Conversation | null = null;
  private unfollow: (() => void) | null = null;
  private readonly drawn = new Map<Entry, () => void>();
  /** Ends with what is shown of a conversation. */
  private shownComponent = this.addChild(new Component());
  /** The session of a saved layout, which is opened when the program is there. */
  private wanted: string | null = null;
  private opening: Promise<void> | null = null;
  private spoken = "";
  private isRunning = false;
  /** Readings of the model so far. */
  private readings = 0;

  constructor(
    leaf: WorkspaceLeaf,
    private readonly own: ConversationServices,
  ) {
    super(leaf, own);
    this.icon = "message-square";
  }

  getViewType(): string {
    return CONVERSATION_VIEW;
  }

  getDisplayText(): string {
    return "Conversation";
  }

  override getState(): Record<string, unknown> {
    const session = this.conversation === null || this.conversation.isEmpty ? this.wanted : this.conversation.id;
    return session === null ? {} : { session };
  }

  override async setState(state: unknown, result: ViewStateResult): Promise<void> {
    const { session } = (state ?? {}) as { session?: unknown };
    if (typeof session === "string" && session !== this.conversation?.id) {
      this.wanted = session;
      if (this.services.agent.state.kind === "ready") await this.open();
    }
    await super.setState(state, result);
  }

  protected build(): void {
    this.contentEl.addClass("vault-agent-conversation");
    const head = this.bodyEl.createDiv({ cls: "vault-agent-change-head" });
    this.titleEl = head.createDiv({ cls: "vault-agent-of" });
    this.optionsEl = head.createDiv({ cls: "vault-agent-options" });
    const button = (text: string, act: () => void) => {
      head.createEl("button", { text, attr: { type: "button" } }).addEventListener("click", act);
    };
    button("New", () => void this.begin());
    button("Conversations", () => void this.toggleSessions());
    this.sessionsEl = this.bodyEl.createDiv({ cls: "vault-agent-sessions" });
    this.sessionsEl.hide();
    this.noModelEl = this.bodyEl.createDiv();
    this.logEl = this.bodyEl.createDiv({ cls: "vault-agent-log", attr: { role: "log", "aria-label": "Conversation", "aria-live": "off", tabindex: "0" } });
    this.queueEl = this.bodyEl.createDiv({ cls: "vault-agent-queue" });
    this.statusEl = this.bodyEl.createDiv({ cls: "vault-agent-status", attr: { role: "status" } });
    this.composer = new Composer(this.bodyEl, {
      app: this.app,
      folder: this.services.agent.vault,
      commands: () => this.conversation?.commands ?? [],
      send: (message) => void this.send(message),
      stop: () => this.conversation?.stop(),
      selection: () => this.own.host.selection,
      focused: () => void this.open(),
    });
    this.privacyEl = this.bodyEl.createDiv({ cls: "vault-agent-keys" });
    this.bodyEl.createDiv({ cls: "vault-agent-keys", text: "↵ send · Shift ↵ new line · Esc stop · ↑ last message" });
    // The selection of an editor can be gone when the focus has left it.
    this.registerDomEvent(this.containerEl, "pointerdown", () => this.composer.rememberSelection(), { capture: true });
    this.register(this.own.conversations.onModel(() => this.modelChanged()));
    this.drawHead();
  }

  private modelChanged(): void {
    this.noModelEl.empty();
    this.drawHead();
    void this.readModel();
  }

  protected hasContent(): boolean {
    return this.logEl.childElementCount > 0;
  }

  protected ready(): void {
    void this.readModel();
    if (this.conversation !== null) void this.resume(this.conversation);
    else if (this.wanted !== null) void this.open();
  }

  override async onClose(): Promise<void> {
    this.unfollow?.();
    if (this.conversation !== null && !this.conversation.isRunning) await this.own.conversations.leave(this.conversation);
  }

  focus(): void {
    this.composer.focus();
  }

  /** Shares the selection of the editor with the next message. */
  useSelection(): void {
    this.composer.useSelection();
  }

  // Sessions

  /** Opens the wanted conversation, or begins one. */
  private open(): Promise<void> {
    if (this.conversation !== null || this.services.agent.state.kind !== "ready") return Promise.resolve();
    this.opening ??= this.openNow().finally(() => {
      this.opening = null;
    });
    return this.opening;
  }

  private async openNow(): Promise<void> {
    const { conversations } = this.own;
    const { wanted } = this;
    try {
      this.show(wanted === null ? await conversations.begin() : await conversations.load(wanted));
      // A layout that is saved meanwhile names the conversation that is loading.
      if (this.wanted === wanted) this.wanted = null;
      // The settings can have been changed outside of the app, and the conversation begins with them.
      void this.readModel();
    } catch (error) {
      // A saved conversation that is gone is not asked for again.
      if (wanted !== null && error instanceof RpcError && error.code !== NO_MODEL) this.wanted = null;
      this.fail(error);
    }
  }

  private async resume(conversation: Conversation): Promise<void> {
    try {
      await this.own.conversations.resume(conversation);
      this.drawHead();
      this.say("");
    } catch (error) {
      this.fail(error);
    }
  }

  private async begin(): Promise<void> {
    await this.leave();
    await this.open();
    this.focus();
  }

  private async leave(): Promise<void> {
    // The one that is opened at the moment is left too, and not shown in place of the next.
    await this.opening;
    const { conversation } = this;
    if (conversation === null) return;
    this.unfollow?.();
    this.conversation = null;
    conversation.stop();
    this.logEl.empty();
    this.drawn.clear();
    this.removeChild(this.shownComponent);
    this.shownComponent = this.addChild(new Component());
    this.queueEl.empty();
    this.say("");
    this.drawHead();
    await this.own.conversations.leave(conversation);
  }

  private async toggleSessions(): Promise<void> {
    if (this.sessionsEl.isShown()) return this.sessionsEl.hide();
    this.sessionsEl.empty();
    this.sessionsEl.show();
    try {
      const sessions = await this.own.conversations.list();
      if (sessions.length === 0) this.sessionsEl.createDiv({ cls: "vault-agent-muted", text: "No conversation about this vault is saved." });
      for (const { sessionId, title, updatedAt } of sessions) {
        const row = this.sessionsEl.createDiv({ cls: "vault-agent-change-head" });
        const name = visible(title ?? sessionId);
        const link = row.createEl("button", { cls: "vault-agent-link", text: name, attr: { type: "button" } });
        if (sessionId === this.conversation?.id) link.setAttr("aria-current", "true");
        if (updatedAt) row.createSpan({ cls: "vault-agent-muted", text: ago(updatedAt, new Date()) });
        link.addEventListener("click", () => void this.switchTo(sessionId));
        const remove = row.createEl("button", { text: "Delete", attr: { type: "button", "aria-label": `Delete ${name}` } });
        remove.addEventListener("click", () => void this.delete(sessionId, row));
      }
    } catch (error) {
      this.sessionsEl.setText(messageOf(error));
    }
  }

  private async switchTo(sessionId: string): Promise<void> {
    this.sessionsEl.hide();
    if (sessionId === this.conversation?.id) return;
    await this.leave();
    this.wanted = sessionId;
    await this.open();
    this.focus();
  }

  private async delete(sessionId: string, row: HTMLElement): Promise<void> {
    try {
      if (sessionId === this.conversation?.id) await this.leave();
      await this.own.conversations.delete(sessionId);
      row.remove();
    } catch (error) {
      this.fail(error);
    }
  }

  // Display

  private show(conversation: Conversation): void {
    this.noModelEl.empty();
    this.conversation = conversation;
    this.unfollow = conversation.onChange((entry) => this.changed(entry));
    for (const entry of conversation.entries) this.draw(entry);
    this.changed(null);
    this.toEnd();
    this.app.workspace.requestSaveLayout();
  }

  private changed(entry: Entry | null): void {
    const { conversation } = this;
    if (conversation === null) return;
    const isNear = this.logEl.scrollHeight - this.logEl.scrollTop - this.logEl.clientHeight < NEAR_END;
    if (entry !== null) {
      this.draw(entry);
      if (entry.kind === "person") this.app.workspace.requestSaveLayout();
    }
    if (this.isRunning && !conversation.isRunning) this.turnEnded();
    this.isRunning = conversation.isRunning;
    this.composer.setRunning(conversation.isRunning);
    this.drawQueue(conversation);
    if (entry === null || entry.kind === "question" || entry.kind === "form" || entry.kind === "person") {
      this.drawHead();
      this.speak(conversation);
    }
    if (isNear) this.toEnd();
  }

  /** Notes and macros can have been changed in a turn. */
  private turnEnded(): void {
    this.services.changed();
    this.own.macrosChanged();
  }

  private draw(entry: Entry): void {
    const { conversation } = this;
    if (conversation === null) return;
    const owner = {
      services: this.services,
      place: { app: this.app, component: this.shownComponent },
      conversation,
      goOn: () => conversation.send({ text: "/continue", shared: [] }),
    };
    const known = this.drawn.get(entry);
    const draw = known ?? showEntry(this.logEl, entry, owner);
    this.drawn.set(entry, draw);
    draw();
  }

  /** Scrolls to the end, or to the beginning of a question that is longer than the log. */
  private toEnd(): void {
    this.logEl.scrollTop = this.logEl.scrollHeight;
    const card = this.logEl.querySelector(OPEN_CARD);
    const above = card === null ? 0 : this.logEl.getBoundingClientRect().top - card.getBoundingClientRect().top;
    if (above > 0) this.logEl.scrollTop -= above;
  }

  private drawHead(): void {
    const { conversation } = this;
    this.titleEl.setText(visible(conversation?.title ?? "") || "New conversation");
    const focused = Array.from(this.optionsEl.children).indexOf(this.optionsEl.doc.activeElement ?? this.optionsEl);
    this.optionsEl.empty();
    for (const { id, name, type, currentValue, options } of conversation?.options ?? []) {
      if (type !== "select" || options.length < 2) continue;
      const select = this.optionsEl.createEl("select", { cls: "dropdown", attr: { "aria-label": visible(name) } });
      for (const { value, name } of options) select.createEl("option", { text: visible(name), value });
      select.value = currentValue;
      select.addEventListener("change", () => {
        if (conversation !== null) void this.setOption(conversation, id, select.value);
      });
    }
    (this.optionsEl.children[focused] as HTMLElement | undefined)?.focus();
  }

  private async setOption(conversation: Conversation, id: string, value: string): Promise<void> {
    try {
      await this.own.conversations.setOption(conversation, id, value);
    } catch (error) {
      // The choice had no effect, and is not shown as if it had.
      this.drawHead();
      this.fail(error);
    }
  }

  private drawQueue(conversation: Conversation): void {
    this.queueEl.empty();
    conversation.queue.forEach((message, at) => {
      const row = this.queueEl.createDiv({ cls: "vault-agent-change-head" });
      row.createSpan({ cls: "vault-agent-muted", text: visible(`Next: ${message.text}`) });
      const take = () => conversation.queue.splice(at, 1);
      const button = (text: string, act: () => void) => {
        row.createEl("button", { text, attr: { type: "button", "aria-label": `${text}: ${visible(message.text)}` } }).addEventListener("click", () => {
          take();
          act();
          this.changed(null);
        });
      };
      if (!conversation.isRunning) button("Send now", () => conversation.send(message));
      button("Edit", () => this.composer.putBack(message));
    });
  }

  /** Says the state of the turn, also to screen readers, each once. */
  private speak(conversation: Conversation): void {
    const open = conversation.openQuestions;
    const text = open > 0 ? "The assistant waits for your decision." : conversation.isRunning ? "The assistant is working…" : "";
    if (text === this.spoken) return;
    this.say(text);
    this.spoken = text;
    if (open === 0) return;
    this.statusEl.createEl("button", { text: "Go to the question", attr: { type: "button" } }).addEventListener("click", () => {
      const card = this.logEl.querySelector<HTMLElement>(OPEN_CARD);
      card?.scrollIntoView({ block: "start" });
      card?.querySelector<HTMLElement>(".vault-agent-card-title, input, button")?.focus();
    });
  }

  private say(text: string): void {
    this.spoken = text;
    this.statusEl.removeClass("is-error");
    this.statusEl.setText(text);
  }

  private fail(error: unknown): void {
    if (error instanceof Cancelled) return;
    if (error instanceof RpcError && error.code === NO_MODEL) return this.showNoModel(error.message);
    this.say(messageOf(error));
    this.statusEl.addClass("is-error");
  }

  private showNoModel(message: string): void {
    this.noModelEl.empty();
    const page = this.noModelEl.createDiv({ cls: "vault-agent-page", attr: { role: "status" } });
    page.createDiv({ cls: "vault-agent-page-title", text: "A conversation needs a model" });
    page.createDiv({ text: visible(message) });
    page.createDiv({ text: "Choose a provider and a model in the settings. A model on this computer, for example with Ollama, needs no key and sends nothing anywhere. Search, related notes and recent changes work without a model." });
    const button = (text: string, act: () => void) => {
      page.createEl("button", { text, attr: { type: "button" } }).addEventListener("click", act);
    };
    button("Settings", () => this.services.openSettings());
    button("Try again", () => {
      this.noModelEl.empty();
      void this.readModel();
      void this.open();
    });
    button("Search instead", () => this.own.openSearch());
  }

  private async readModel(): Promise<void> {
    const reading = ++this.readings;
    const text = await this.services.agent.request("_vault/model_state", {}).then(privacyNote, (error: unknown) => `It is not known where your messages go: ${messageOf(error)}`);
    if (reading === this.readings) this.privacyEl.setText(visible(text));
  }

  // Messages from the person

  private async send(message: Message): Promise<void> {
    await this.open();
    if (this.conversation === null) return this.composer.putBack(message);
    this.conversation.send(message);
    this.toEnd();
  }
}
