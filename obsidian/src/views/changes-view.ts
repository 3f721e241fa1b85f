// Recent changes: what assistants, plans, the command line and this plugin did to the notes, with undo and redo.

import { debounce, type WorkspaceLeaf } from "obsidian";
import { Cancelled } from "../agent/rpc";
import type { PastTransaction } from "../protocol";
import { AgentView, type ViewServices } from "./agent-view";
import { messageOf, redoTransaction, undoTransaction } from "./approval-modal";
import { showFileChanges } from "./file-changes";
import { ago, counted, noteName, visible } from "./text";

export const CHANGES_VIEW = "vault-agent-changes";

/** How long changes of files rest before the journal is read again. */
const REST_MS = 400;

const PAGE = 20;
const MOST = 200;

const STATUS = { done: "", undone: "undone", "rolled-back": "failed, rolled back", interrupted: "interrupted", damaged: "damaged" } as const;

/** The label of a transaction for people: `rename_note` is `Rename note`. */
export function labelOf({ kind, label, of }: PastTransaction): string {
  if (kind === "undo") return `Undo of ${of ?? "a change"}`;
  if (kind === "redo") return `Redo of ${of ?? "a change"}`;
  const isTool = /^[a-z]+(?:[_.][a-zA-Z]+)*$/.test(label);
  const words = isTool ? label.replace(/[_.]/g, " ") : label;
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The action that reverts a transaction. A change that was undone can be redone. */
export function revertOf({ kind, status }: PastTransaction): "undo" | "redo" | null {
  if (status === "done" && kind !== "undo") return "undo";
  return status === "undone" && kind === "change" ? "redo" : null;
}

export class ChangesView extends AgentView {
  private listEl!: HTMLElement;
  private statusEl!: HTMLElement;
  private moreEl!: HTMLButtonElement;
  private limit = PAGE;
  private reading = new AbortController();
  private readonly open = new Set<number>();
  /** The list that is shown; empty before the first. */
  private shown = "";

  constructor(leaf: WorkspaceLeaf, services: ViewServices) {
    super(leaf, services);
    this.icon = "history";
  }

  getViewType(): string {
    return CHANGES_VIEW;
  }

  getDisplayText(): string {
    return "Recent changes";
  }

  protected build(): void {
    this.statusEl = this.bodyEl.createDiv({ cls: "vault-agent-status", attr: { role: "status" } });
    this.listEl = this.bodyEl.createDiv({ cls: "vault-agent-changes" });
    this.moreEl = this.bodyEl.createEl("button", { cls: "vault-agent-more", text: "Show more", attr: { type: "button" } });
    this.moreEl.hide();
    this.moreEl.addEventListener("click", () => {
      this.limit = Math.min(MOST, this.limit + PAGE);
      this.read();
    });
    const later = debounce(() => this.read(), REST_MS, true);
    for (const event of ["create", "modify", "delete", "rename"] as const) {
      this.registerEvent(this.app.vault.on(event as "create", () => later()));
    }
  }

  protected hasContent(): boolean {
    return this.shown !== "";
  }

  protected ready(): void {
    this.read();
  }

  override async onClose(): Promise<void> {
    this.reading.abort();
    return Promise.resolve();
  }

  /** Reads the journal again. */
  refresh(): void {
    this.read();
  }

  private read(): void {
    this.reading.abort();
    if (this.services.agent.state.kind !== "ready") return;
    const { signal } = (this.reading = new AbortController());
    this.services.agent.request("_vault/transactions", { limit: this.limit }, signal).then(
      ({ transactions, hasMore, warnings }) => {
        // Most changes of files are edits by hand, which are in no journal: the list stays as it is, with its focus.
        const shown = JSON.stringify([transactions, hasMore, warnings]);
        if (signal.aborted || shown === this.shown) return;
        this.shown = shown;
        this.statusEl.toggleClass("is-error", warnings.length > 0);
        this.statusEl.setText(visible(warnings.join(" ") || (transactions.length === 0 ? "No change was made yet." : "")));
        this.listEl.empty();
        const now = new Date();
        for (const transaction of transactions) this.show(transaction, now);
        this.moreEl.toggle(hasMore && this.limit < MOST);
      },
      (error: unknown) => {
        if (signal.aborted || error instanceof Cancelled) return;
        this.statusEl.addClass("is-error");
        this.statusEl.setText(messageOf(error));
      },
    );
  }

  private show(past: PastTransaction, now: Date): void {
    const number = past.transaction;
    const row = this.listEl.createDiv({ cls: `vault-agent-change is-${past.status}` });
    const head = row.createDiv({ cls: "vault-agent-change-head" });
    const opener = head.createEl("button", {
      cls: "vault-agent-link",
      text: visible(labelOf(past)),
      attr: { type: "button", "aria-expanded": "false" },
    });
    const revert = revertOf(past);
    if (STATUS[past.status] !== "") head.createSpan({ cls: "vault-agent-badge", text: STATUS[past.status] });
    if (revert !== null) {
      const label = revert === "undo" ? "Undo…" : "Redo…";
      const button = head.createEl("button", { text: label, attr: { type: "button", "aria-label": visible(`${label} ${number}: ${labelOf(past)}`) } });
      button.addEventListener("click", () => (revert === "undo" ? undoTransaction : redoTransaction)(this.services, number));
    }
    row.createDiv({ cls: "vault-agent-muted", text: `${number} · ${ago(past.time, now)}`, attr: { title: new Date(past.time).toLocaleString() } });
    const shown = past.paths.slice(0, 3).map(noteName).join(", ");
    const more = past.pathsInAll > 3 ? ` and ${counted(past.pathsInAll - 3, "more", "more")}` : "";
    row.createDiv({ cls: "vault-agent-path", text: visible(`${shown}${more}`) });
    const details = row.createDiv({ cls: "vault-agent-details" });
    details.hide();
    const toggle = (isOpen: boolean) => {
      opener.setAttr("aria-expanded", String(isOpen));
      details.toggle(isOpen);
      if (isOpen) this.open.add(number);
      else this.open.delete(number);
      if (isOpen && details.childElementCount === 0) void this.showFiles(details, number);
    };
    opener.addEventListener("click", () => toggle(opener.getAttr("aria-expanded") !== "true"));
    if (this.open.has(number)) toggle(true);
  }

  private async showFiles(parent: HTMLElement, transaction: number): Promise<void> {
    try {
      const change = await this.services.agent.request("_vault/transaction", { transaction });
      parent.empty();
      showFileChanges(parent, change);
    } catch (error) {
      parent.setText(messageOf(error));
    }
  }
}
