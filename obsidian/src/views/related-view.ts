// Around the open note: notes about the same, links that it could have, and places that name it without a link.

import { debounce, type TFile, type WorkspaceLeaf } from "obsidian";
import { Cancelled, RpcError } from "../agent/rpc";
import { linkTo, openNote } from "../notes";
import type { MissingLink, RelatedNote } from "../protocol";
import { AgentView, type ViewServices } from "./agent-view";
import { ApprovalModal, messageOf, tellDone } from "./approval-modal";
import { coverageOf } from "./search-view";
import { baseName, counted, noteName, showSegments, visible } from "./text";

export const RELATED_VIEW = "vault-agent-related";

/** How long edits rest before the note is looked at again. */
const REST_MS = 800;

/** How soon a note whose embeddings are missing is looked at again: later each time. */
const AGAIN_MS = 3_000;
const LONGEST_MS = 60_000;

const LISTED = 20;

/** Related notes that are shown at first, so that the missing links below are in sight. */
const SHOWN = 6;

const REASONS = { name: "by name", "link-text": "linked so elsewhere", meaning: "by meaning" } as const;

/** Links that can be ticked and made in one change. */
type Kind = "suggestions" | "mentions";

export class RelatedView extends AgentView {
  private file: TFile | null = null;
  private titleEl!: HTMLElement;
  private statusEl!: HTMLElement;
  private relatedEl!: HTMLElement;
  private missingEl!: Record<Kind, HTMLElement>;
  private looking = new AbortController();
  private timer: number | null = null;
  /** The result that is shown, as JSON; empty before the first. */
  private shown = "";
  /** The note was not looked at while the view was hidden. */
  private isStale = false;
  private pause = AGAIN_MS;

  constructor(leaf: WorkspaceLeaf, services: ViewServices) {
    super(leaf, services);
    this.icon = "links-coming-in";
  }

  getViewType(): string {
    return RELATED_VIEW;
  }

  getDisplayText(): string {
    return "Related notes";
  }

  protected build(): void {
    this.titleEl = this.bodyEl.createDiv({ cls: "vault-agent-of" });
    this.statusEl = this.bodyEl.createDiv({ cls: "vault-agent-status", attr: { role: "status" } });
    const section = (title: string) => {
      const box = this.bodyEl.createEl("section", { attr: { "aria-label": title } });
      box.createDiv({ cls: "vault-agent-section-title", text: title });
      return box.createDiv();
    };
    this.relatedEl = section("Related notes");
    this.missingEl = { suggestions: section("Links this note could have"), mentions: section("Mentions without a link") };
    const later = debounce(() => this.look(), REST_MS, true);
    this.registerEvent(this.app.workspace.on("file-open", (file) => this.followFile(file)));
    this.registerEvent(this.app.metadataCache.on("changed", (file) => {
      if (file !== this.file) return;
      this.pause = AGAIN_MS;
      later();
    }));
    this.registerEvent(this.app.vault.on("rename", () => later()));
    this.followFile(this.app.workspace.getActiveFile());
  }

  protected hasContent(): boolean {
    return this.shown !== "";
  }

  protected ready(): void {
    this.look();
  }

  override async onClose(): Promise<void> {
    this.stop();
    return Promise.resolve();
  }

  private stop(): void {
    this.looking.abort();
    if (this.timer !== null) window.clearTimeout(this.timer);
    this.timer = null;
  }

  /** Looks at the note again, for example after a change was made. */
  refresh(): void {
    this.look();
  }

  private followFile(file: TFile | null): void {
    // A view of another kind, such as a graph, has no file: the last note stays.
    if (file === null || file === this.file) return;
    this.file = file;
    this.pause = AGAIN_MS;
    this.look();
  }

  /** The view came into sight, or has another size. */
  override onResize(): void {
    if (this.isStale) this.look();
  }

  private look(): void {
    this.stop();
    this.isStale = !this.containerEl.isShown();
    if (this.isStale) return;
    this.titleEl.setText(this.file === null ? "" : visible(baseName(this.file.path)));
    if (this.file === null) return this.say("Open a note to see what is related to it.");
    if (this.file.extension !== "md") return this.clear("This file is not a note.");
    if (this.services.agent.state.kind !== "ready") return;
    const { path } = this.file;
    const { signal } = (this.looking = new AbortController());
    Promise.all([
      this.services.agent.request("_vault/related", { path, limit: LISTED }, signal),
      this.services.agent.request("_vault/mentions", { path, limit: LISTED }, signal),
    ]).then(
      ([related, missing]) => {
        if (signal.aborted) return;
        this.say(coverageOf(related.coverage).join(" · "));
        if (related.coverage.pending + related.coverage.unread > 0) this.again();
        // Ticks and the focus stay where nothing is new.
        const shown = JSON.stringify([path, related.notes, missing]);
        if (shown === this.shown) return;
        this.shown = shown;
        this.showRelated(related.notes);
        this.showMissing("suggestions", missing.suggestions, missing.suggestionsInAll);
        this.showMissing("mentions", missing.mentions, missing.mentionsInAll);
      },
      (error: unknown) => {
        if (signal.aborted || error instanceof Cancelled) return;
        if (error instanceof RpcError && error.kind === "NOT_FOUND") {
          this.clear("This note is not in the index yet.");
          return this.again();
        }
        this.clear(messageOf(error), true);
      },
    );
  }

  private again(): void {
    this.timer = window.setTimeout(() => this.look(), this.pause);
    this.pause = Math.min(LONGEST_MS, this.pause * 2);
  }

  private say(message: string, isError = false): void {
    this.statusEl.toggleClass("is-error", isError);
    this.statusEl.setText(message);
  }

  private clear(message: string, isError = false): void {
    this.say(message, isError);
    this.shown = "";
    this.relatedEl.empty();
    this.missingEl.suggestions.empty();
    this.missingEl.mentions.empty();
  }

  private showRelated(notes: RelatedNote[]): void {
    this.relatedEl.empty();
    if (notes.length === 0) return void this.relatedEl.createDiv({ cls: "vault-agent-muted", text: "None found." });
    const more = createEl("button", { cls: "vault-agent-more", text: "Show more", attr: { type: "button" } });
    notes.forEach((note, index) => {
      if (index === SHOWN) this.relatedEl.append(more);
      const row = this.relatedEl.createDiv({ cls: "vault-agent-related", attr: { draggable: "true" } });
      const head = row.createDiv({ cls: "vault-agent-result-title" });
      this.opener(head, note.title, note.path, note.line);
      if (note.isLinked) head.createSpan({ cls: "vault-agent-badge", text: "linked" });
      row.createDiv({ cls: "vault-agent-path", text: visible(noteName(note.path)) });
      showSegments(row.createDiv({ cls: "vault-agent-excerpt" }), note.excerpt);
      row.addEventListener("dragstart", (event) => {
        event.dataTransfer?.setData("text/plain", linkTo(this.app, note.path, this.file?.path ?? ""));
      });
      row.toggle(index < SHOWN);
    });
    more.addEventListener("click", () => {
      more.remove();
      for (const row of Array.from(this.relatedEl.children)) if (row.instanceOf(HTMLElement)) row.show();
    });
  }

  /** A title that opens its note, with a modifier in a new tab. */
  private opener(parent: HTMLElement, title: string, path: string, line: number | null): void {
    const button = parent.createEl("button", { cls: "vault-agent-link", text: visible(title), attr: { type: "button" } });
    button.addEventListener("click", (event) => {
      void openNote(this.app, path, line, event.ctrlKey || event.metaKey);
    });
  }

  private showMissing(kind: Kind, links: MissingLink[], inAll: number): void {
    const parent = this.missingEl[kind];
    parent.empty();
    if (links.length === 0) return void parent.createDiv({ cls: "vault-agent-muted", text: "None found." });
    const ticked = new Set<MissingLink>();
    const all = parent.createEl("button", { cls: "vault-agent-link-ticked", attr: { type: "button" } });
    const count = () => {
      all.setText(`Link ${counted(ticked.size, "ticked place")}…`);
      all.toggle(ticked.size > 1);
    };
    all.addEventListener("click", () => this.make([...ticked]));
    count();
    for (const missing of links) {
      const { link, reason, sentence, targetTitle } = missing;
      const row = parent.createDiv({ cls: "vault-agent-missing" });
      const place = kind === "mentions" ? baseName(link.path) : targetTitle;
      const head = row.createDiv({ cls: "vault-agent-missing-head" });
      const tick = head.createEl("input", { type: "checkbox", attr: { "aria-label": visible(`Tick ${place}, line ${link.line}`) } });
      tick.addEventListener("change", () => {
        if (tick.checked) ticked.add(missing);
        else ticked.delete(missing);
        count();
      });
      if (kind === "mentions") this.opener(head, `${place}:${link.line}`, link.path, link.line);
      else this.opener(head, place, link.target, null);
      head.createSpan({ cls: "vault-agent-muted", text: REASONS[reason] });
      const accept = head.createEl("button", { text: "Link…", cls: "vault-agent-accept", attr: { type: "button", "aria-label": visible(`Make the link: ${place}, line ${link.line}`) } });
      accept.addEventListener("click", () => this.make([missing]));
      showSegments(row.createDiv({ cls: "vault-agent-excerpt" }), sentence);
    }
    if (inAll > links.length) parent.createDiv({ cls: "vault-agent-muted", text: `${counted(inAll - links.length, "more")} not shown.` });
  }

  /** Shows what the links would change, and makes them in one change after an approval. */
  private make(missing: MissingLink[]): void {
    const links = missing.map(({ link }) => link);
    const done = links.length === 1 ? "The link was made." : `${counted(links.length, "link")} were made.`;
    const modal = new ApprovalModal(this.services, links.length === 1 ? "Make this link" : `Make ${links.length} links`, "Apply", (result) => tellDone(this.services, done, result));
    modal.open();
    void modal.show({ kind: "links", links });
  }
}
