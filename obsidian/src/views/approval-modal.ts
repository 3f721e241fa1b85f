// A change before it is made: everything that it does, and the person's approval of exactly that.

import { Modal, Notice, type App } from "obsidian";
import type { Agent } from "../agent/process";
import { Cancelled, RpcError } from "../agent/rpc";
import { saveEditors } from "../notes";
import type { ApplyResult, PrepareResult, WantedChange } from "../protocol";
import { showFileChanges } from "./file-changes";
import { counted, visible } from "./text";
import { DRAWN, SHOW_ALL, drawAll, hasUndrawn } from "./undrawn";

/** The parts of the plugin that a view uses. */
export interface Services {
  app: App;
  agent: Agent;
  /** Called after a change was made or undone. */
  changed(): void;
}

/** The message of an error for a person, with what they can do. */
export function messageOf(error: unknown): string {
  if (error instanceof RpcError && error.remedy !== null) return visible(`${error.message}: ${error.remedy}`);
  return visible(error instanceof Error ? error.message : String(error));
}

/** The paths of files, as they are before their change. */
export function pathsBefore({ files }: Pick<PrepareResult, "files">): Set<string> {
  return new Set(files.flatMap((file) => [file.path, ...file.inside]));
}

/** How much a change does, in one line. */
export function summaryOf(change: PrepareResult): string {
  const links = change.links > 0 ? [counted(change.links, "link")] : [];
  return [counted(change.notes, "note"), ...links].join(", ");
}

export class ApprovalModal extends Modal {
  protected readonly bodyEl: HTMLElement;
  private readonly messageEl: HTMLElement;
  private readonly applyButton: HTMLButtonElement;
  private prepared: { change: WantedChange; shown: PrepareResult } | null = null;
  private isApplying = false;
  private reading = new AbortController();

  constructor(
    protected readonly services: Services,
    title: string,
    private readonly applyLabel: string,
    private readonly done: (result: ApplyResult) => void = () => undefined,
  ) {
    super(services.app);
    this.modalEl.addClass("vault-agent-modal");
    this.setTitle(title);
    this.messageEl = this.contentEl.createDiv({ cls: "vault-agent-status", attr: { role: "status", tabindex: "-1" } });
    this.bodyEl = this.contentEl.createDiv({ cls: "vault-agent-approval" });
    this.bodyEl.addEventListener(DRAWN, () => this.labelApply());
    const buttons = this.contentEl.createDiv({ cls: "modal-button-container" });
    this.applyButton = buttons.createEl("button", { text: applyLabel, cls: "mod-cta", attr: { type: "button" } });
    this.applyButton.disabled = true;
    // The second half of a double click approves nothing: the first has drawn what was left.
    this.applyButton.addEventListener("click", (event) => {
      if (event.detail <= 1) void this.apply();
    });
    // A key that is still held down from before the dialog approves nothing.
    this.applyButton.addEventListener("keydown", (event) => {
      if (event.repeat) event.preventDefault();
    });
    const cancel = buttons.createEl("button", { text: "Cancel", attr: { type: "button" } });
    cancel.addEventListener("click", () => this.close());
  }

  override onClose(): void {
    this.reading.abort();
    this.contentEl.empty();
  }

  /** Prepares a change and shows it. */
  async show(change: WantedChange, notice = ""): Promise<void> {
    this.forget("Preparing the change…");
    const reading = this.reading;
    try {
      const shown = await this.services.agent.request("_vault/prepare", { change }, reading.signal);
      if (reading.signal.aborted) return;
      this.draw(change, shown, notice);
    } catch (error) {
      if (!(error instanceof Cancelled) && !reading.signal.aborted) this.fail(messageOf(error));
    }
  }

  /** Forgets what was shown, so that it can no longer be approved. */
  protected forget(message: string): void {
    this.reading.abort();
    this.reading = new AbortController();
    this.prepared = null;
    this.applyButton.disabled = true;
    this.bodyEl.empty();
    this.labelApply();
    this.messageEl.removeClass("is-error");
    this.messageEl.setText(message);
  }

  private fail(message: string): void {
    this.messageEl.addClass("is-error");
    this.messageEl.setText(message);
  }

  private draw(change: WantedChange, shown: PrepareResult, notice: string): void {
    this.bodyEl.empty();
    this.messageEl.setText(notice === "" ? summaryOf(shown) : `${notice} ${summaryOf(shown)}`);
    showFileChanges(this.bodyEl, shown);
    if (shown.denied !== null && shown.denied !== undefined) {
      this.fail(visible(`The settings of this vault deny it: ${shown.denied}`));
      return;
    }
    this.prepared = { change, shown };
    this.applyButton.disabled = false;
    this.labelApply();
    // A change that differs from the one before is not approved by a second press of the same key. A field of the dialog keeps the focus.
    if (notice !== "") this.messageEl.focus();
    else if (!this.contentEl.contains(this.contentEl.doc.activeElement)) this.applyButton.focus();
  }

  private labelApply(): void {
    this.applyButton.setText(hasUndrawn(this.bodyEl) ? SHOW_ALL : this.applyLabel);
  }

  /** Makes the change that is shown, and no other. */
  async apply(): Promise<void> {
    if (this.prepared === null || this.isApplying) return;
    if (hasUndrawn(this.bodyEl)) return drawAll(this.bodyEl, this.messageEl);
    const { change, shown } = this.prepared;
    this.isApplying = true;
    this.applyButton.disabled = true;
    try {
      // Text that the person typed a moment ago belongs to the notes.
      await saveEditors(this.services.app, pathsBefore(shown));
      const result = await this.services.agent.request("_vault/apply", { change, digest: shown.digest });
      this.close();
      this.services.changed();
      this.done(result);
      for (const notice of result.notices) new Notice(visible(notice));
    } catch (error) {
      if (error instanceof RpcError && error.kind === "CONFLICT") {
        await this.show(change, "The notes have changed since this was shown. This is the change as it would be now:");
      } else {
        this.fail(messageOf(error));
        // It was not made, or its outcome is unknown: it is prepared again before it can be approved again.
        this.prepared = null;
      }
    } finally {
      this.isApplying = false;
    }
  }
}

/** Tells that a change was made, with a button that undoes it. */
export function tellDone(services: Services, what: string, result: ApplyResult): void {
  const { transaction } = result;
  const fragment = createFragment((parent) => {
    parent.createDiv({ text: visible(what) });
    if (transaction === null || transaction === undefined) return;
    const undo = parent.createEl("button", { text: "Undo…", attr: { type: "button" } });
    undo.addEventListener("click", () => undoTransaction(services, transaction));
  });
  new Notice(fragment, 10_000);
}

/** Shows what undoing a transaction would do, and undoes it after an approval. */
export function undoTransaction(services: Services, transaction: number | null): void {
  const title = transaction === null ? "Undo the last change" : `Undo change ${transaction}`;
  const modal = new ApprovalModal(services, title, "Undo", () => new Notice("Undone."));
  modal.open();
  void modal.show({ kind: "undo", transaction });
}

/** The same for a redo. */
export function redoTransaction(services: Services, transaction: number | null): void {
  const title = transaction === null ? "Redo the last undone change" : `Redo change ${transaction}`;
  const modal = new ApprovalModal(services, title, "Redo", (result) => tellDone(services, "Redone.", result));
  modal.open();
  void modal.show({ kind: "redo", transaction });
}
