// Search: words at each key, meaning a moment later; the keyboard does everything.

import { Keymap, debounce, type WorkspaceLeaf } from "obsidian";
import { Cancelled, RpcError } from "../agent/rpc";
import { insertLink, linkTo, openNote } from "../notes";
import type { Coverage, Ranking, SearchHit, SearchResult, VocabularyResult } from "../protocol";
import { accept, complete, type Completion } from "../query";
import { AgentView, type ViewServices } from "./agent-view";
import { messageOf } from "./approval-modal";
import { counted, noteName, showSegments, visible } from "./text";

export const SEARCH_VIEW = "vault-agent-search";

/** Notes that are shown at first, and that are added by "Show more". */
const PAGE = 20;
const MOST = 200;

/** How long the typing rests before notes are ranked by meaning, which takes longer. */
const REST_MS = 120;

/** How often the index is asked whether more embeddings are there. */
const POLL_MS = 3_000;

let number = 0;

export class SearchView extends AgentView {
  private inputEl!: HTMLInputElement;
  private completionsEl!: HTMLElement;
  private statusEl!: HTMLElement;
  private listEl!: HTMLElement;
  private moreEl!: HTMLButtonElement;
  private readonly id = `vault-agent-search-${++number}`;
  private vocabulary: VocabularyResult | null = null;
  private names: { folders: string[]; notes: string[] } | null = null;
  private completions: Completion[] = [];
  private completion = -1;
  private hits: SearchHit[] = [];
  private options: HTMLElement[] = [];
  private selected = -1;
  private isPreviewing = false;
  private limit = PAGE;
  private searching = new AbortController();
  private timer: number | null = null;

  constructor(leaf: WorkspaceLeaf, services: ViewServices) {
    super(leaf, services);
    this.icon = "search";
  }

  getViewType(): string {
    return SEARCH_VIEW;
  }

  getDisplayText(): string {
    return "Vault search";
  }

  protected build(): void {
    const box = this.bodyEl.createDiv({ cls: "vault-agent-search-box" });
    const listId = `${this.id}-list`;
    this.inputEl = box.createEl("input", {
      type: "search",
      placeholder: "Words, a question, tag:…",
      attr: {
        "aria-label": "Search notes by words and meaning",
        role: "combobox",
        "aria-expanded": "false",
        "aria-controls": listId,
        "aria-autocomplete": "list",
        autocomplete: "off",
        spellcheck: "false",
      },
    });
    this.completionsEl = box.createDiv({
      cls: "vault-agent-completions",
      attr: { role: "listbox", "aria-label": "Completions", id: `${this.id}-completions` },
    });
    this.completionsEl.hide();
    this.statusEl = this.bodyEl.createDiv({ cls: "vault-agent-status", attr: { role: "status" } });
    this.listEl = this.bodyEl.createDiv({ cls: "vault-agent-results", attr: { role: "listbox", "aria-label": "Notes found", id: listId } });
    this.moreEl = this.bodyEl.createEl("button", { cls: "vault-agent-more", text: "Show more", attr: { type: "button" } });
    this.moreEl.hide();
    this.bodyEl.createDiv({
      cls: "vault-agent-keys",
      text: "↑ ↓ select · ↵ open · Ctrl ↵ new tab · Alt ↵ insert link · Shift ↵ preview",
    });
    this.inputEl.addEventListener("input", () => this.typed());
    this.inputEl.addEventListener("click", () => this.offer());
    this.inputEl.addEventListener("keydown", (event) => this.key(event));
    this.inputEl.addEventListener("blur", () => this.closeCompletions());
    this.moreEl.addEventListener("click", () => {
      this.limit = Math.min(MOST, this.limit + PAGE);
      this.search();
    });
    const forget = debounce(() => {
      this.names = null;
    }, 1_000);
    for (const event of ["create", "delete", "rename"] as const) {
      this.registerEvent(this.app.vault.on(event as "create", forget));
    }
    this.hint();
  }

  protected hasContent(): boolean {
    return this.hits.length > 0;
  }

  protected ready(): void {
    void this.loadVocabulary();
    this.search();
  }

  override async onClose(): Promise<void> {
    this.searching.abort();
    this.stopPolling();
    return Promise.resolve();
  }

  /** Puts the focus into the field, with a query if one is given. */
  focus(query?: string): void {
    if (query !== undefined) {
      this.inputEl.value = query;
      this.typed();
    }
    this.inputEl.focus();
    this.inputEl.select();
  }

  private async loadVocabulary(): Promise<void> {
    try {
      this.vocabulary = await this.services.agent.request("_vault/vocabulary", {});
    } catch {
      // Without it there are no completions; the search says what is wrong.
    }
  }

  // Searching

  private typed(): void {
    this.limit = PAGE;
    this.selected = -1;
    this.isPreviewing = false;
    this.search();
    this.offer();
  }

  /** Searches by words at once, and by meaning when the typing rests. */
  private search(): void {
    this.searching.abort();
    this.stopPolling();
    const searching = (this.searching = new AbortController());
    const query = this.inputEl.value.trim();
    if (query === "") {
      this.show([]);
      return this.hint();
    }
    if (this.services.agent.state.kind !== "ready") return;
    const run = async () => {
      const byWords = await this.ask(query, "words", searching.signal);
      await new Promise((resolve) => window.setTimeout(resolve, REST_MS));
      if (!searching.signal.aborted) await this.ask(query, "meaning", searching.signal, byWords);
    };
    run().catch((error: unknown) => {
      if (error instanceof Cancelled || searching.signal.aborted) return;
      // A query that the program rejects has no results. When the program ends, those before stay readable.
      if (error instanceof RpcError) this.show([]);
      this.statusEl.addClass("is-error");
      this.statusEl.setText(messageOf(error));
    });
  }

  private async ask(query: string, ranking: Ranking, signal: AbortSignal, before: SearchHit[] = []): Promise<SearchHit[]> {
    const found = await this.services.agent.request("_vault/search", { query, ranking, limit: this.limit }, signal);
    if (signal.aborted) return [];
    const hits = merged(found.hits, before, this.limit);
    this.show(hits);
    this.report({ ...found, hits });
    if (ranking === "meaning" && found.coverage.pending + found.coverage.unread > 0) this.poll();
    return hits;
  }

  /** Searches again when more of the index is there. */
  private poll(): void {
    this.timer = window.setTimeout(() => {
      if (this.containerEl.isShown() && this.selected <= 0) this.search();
      else this.poll();
    }, POLL_MS);
  }

  private stopPolling(): void {
    if (this.timer !== null) window.clearTimeout(this.timer);
    this.timer = null;
  }

  private hint(): void {
    this.statusEl.removeClass("is-error");
    this.statusEl.setText("Type words or a question. Operators such as tag: and path: narrow the search.");
  }

  private report({ hits, ranking, coverage, substitutions, unknownOperators, nearMisses }: SearchResult): void {
    const more = hits.length >= this.limit ? "first " : "";
    const hasMeaning = ranking === "meaning" && coverage.pending < coverage.passages;
    const parts = [hits.length === 0 ? "Nothing found" : `${more}${counted(hits.length, "note")} by ${hasMeaning ? "words and meaning" : "words"}`];
    for (const { word, readAs } of substitutions) parts.push(`searched for ${readAs.join(", ")} instead of ${word}`);
    if (unknownOperators.length > 0) parts.push(`not operators: ${unknownOperators.join(", ")}`);
    parts.push(...coverageOf(coverage));
    if (hits.length === 0 && nearMisses.length > 0) parts.push(`closest: ${nearMisses.map(({ title }) => title).join(", ")}`);
    const text = visible(parts.join(" · "));
    this.statusEl.removeClass("is-error");
    this.statusEl.setText(text.charAt(0).toUpperCase() + text.slice(1));
    this.moreEl.toggle(hits.length >= this.limit && this.limit < MOST);
  }

  // Results

  private show(hits: SearchHit[]): void {
    const kept = this.selected > 0 ? this.hits[this.selected]?.path : undefined;
    this.hits = hits;
    this.listEl.empty();
    this.options = hits.map((hit, index) => this.option(hit, index));
    if (hits.length === 0) this.moreEl.hide();
    const selected = kept === undefined ? 0 : hits.findIndex((hit) => hit.path === kept);
    this.select(hits.length === 0 ? -1 : Math.max(0, selected), false);
    this.inputEl.setAttr("aria-expanded", String(hits.length > 0));
  }

  private option(hit: SearchHit, index: number): HTMLElement {
    const option = this.listEl.createDiv({
      cls: `vault-agent-result${hit.isWeak ? " is-weak" : ""}`,
      attr: { role: "option", id: `${this.id}-${index}`, "aria-selected": "false", draggable: "true" },
    });
    const head = option.createDiv({ cls: "vault-agent-result-title" });
    head.createSpan({ text: visible([hit.title, ...hit.headings].join(" › ")) });
    option.createDiv({ cls: "vault-agent-path", text: visible(`${noteName(hit.path)}:${hit.line}`) });
    showSegments(option.createDiv({ cls: "vault-agent-excerpt" }), hit.excerpt);
    // The focus stays in the field: these are for the pointer, the keys do the same.
    option.addEventListener("mousedown", (event) => event.preventDefault());
    option.addEventListener("click", (event) => {
      this.select(index, false);
      void this.open(Keymap.isModEvent(event) !== false);
    });
    option.addEventListener("dragstart", (event) => {
      event.dataTransfer?.setData("text/plain", linkTo(this.app, hit.path, ""));
    });
    option.addEventListener("mouseover", (event) => {
      this.app.workspace.trigger("hover-link", {
        event,
        source: SEARCH_VIEW,
        hoverParent: this.leaf,
        targetEl: option,
        linktext: hit.path,
        state: { scroll: hit.line - 1 },
      });
    });
    return option;
  }

  private select(index: number, isByKey: boolean): void {
    const before = this.options[this.selected];
    before?.setAttr("aria-selected", "false");
    before?.querySelector(".vault-agent-passage")?.remove();
    this.selected = index;
    const option = this.options[index];
    this.setActive();
    if (option === undefined) return;
    option.setAttr("aria-selected", "true");
    const hit = this.hits[index];
    if (this.isPreviewing && hit !== undefined) {
      const passage = option.createDiv({ cls: "vault-agent-passage" });
      showSegments(passage, hit.passage);
    }
    if (isByKey) option.scrollIntoView({ block: "nearest" });
  }

  /** Names the option that Enter takes to screen readers: the highlighted completion, else the selected result. */
  private setActive(): void {
    const option = this.completionsEl.children[this.completion] ?? this.options[this.selected];
    if (option === undefined) this.inputEl.removeAttribute("aria-activedescendant");
    else this.inputEl.setAttr("aria-activedescendant", option.id);
  }

  private async open(inNewTab: boolean): Promise<void> {
    const hit = this.hits[this.selected];
    if (hit !== undefined) await openNote(this.app, hit.path, hit.line, inNewTab);
  }

  // Keys

  private key(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (this.completions.length > 0 && this.completionKey(event)) return event.preventDefault();
    const last = this.options.length - 1;
    switch (event.key) {
      case "ArrowDown":
        this.select(Math.min(last, this.selected + 1), true);
        break;
      case "ArrowUp":
        this.select(Math.max(Math.min(0, last), this.selected - 1), true);
        break;
      case "PageDown":
        this.select(Math.min(last, this.selected + 5), true);
        break;
      case "PageUp":
        this.select(Math.max(Math.min(0, last), this.selected - 5), true);
        break;
      case "Enter":
        this.enter(event);
        break;
      case "Escape":
        if (this.inputEl.value === "") return;
        this.inputEl.value = "";
        this.typed();
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  private enter(event: KeyboardEvent): void {
    const hit = this.hits[this.selected];
    if (hit === undefined) return;
    if (event.shiftKey) {
      this.isPreviewing = !this.isPreviewing;
      this.select(this.selected, true);
    } else if (event.altKey) insertLink(this.app, hit.path);
    else void this.open(event.ctrlKey || event.metaKey);
  }

  // Completions

  private offer(): void {
    const { value, selectionStart } = this.inputEl;
    const cursor = selectionStart ?? value.length;
    this.completions = this.vocabulary === null ? [] : complete(value, cursor, this.vocabulary, this);
    this.completion = -1;
    this.completionsEl.empty();
    this.completions.forEach((completion, index) => {
      const option = this.completionsEl.createDiv({
        cls: "vault-agent-completion",
        attr: { role: "option", id: `${this.id}-completion-${index}`, "aria-selected": "false" },
      });
      option.createSpan({ text: visible(completion.label) });
      option.createSpan({ cls: "vault-agent-muted", text: visible(completion.detail) });
      option.addEventListener("mousedown", (event) => {
        event.preventDefault();
        this.take(completion);
      });
    });
    this.completionsEl.toggle(this.completions.length > 0);
    this.setActive();
    this.inputEl.setAttr("aria-controls", this.completions.length > 0 ? this.completionsEl.id : this.listEl.id);
  }

  /** The names that complete `path:` and `link:`. They are read again after files come or go. */
  folders(): string[] {
    return this.known().folders;
  }

  notes(): string[] {
    return this.known().notes;
  }

  private known(): { folders: string[]; notes: string[] } {
    this.names ??= {
      folders: this.app.vault.getAllFolders().map(({ path }) => path),
      notes: this.app.vault.getMarkdownFiles().map(({ basename }) => basename),
    };
    return this.names;
  }

  private completionKey(event: KeyboardEvent): boolean {
    const last = this.completions.length - 1;
    switch (event.key) {
      case "ArrowDown":
        this.highlight(this.completion >= last ? 0 : this.completion + 1);
        return true;
      case "ArrowUp":
        this.highlight(this.completion <= 0 ? last : this.completion - 1);
        return true;
      case "Tab":
      case "Enter": {
        // Enter opens the note unless a completion is highlighted; Tab takes the first.
        const completion = this.completions[event.key === "Tab" ? Math.max(0, this.completion) : this.completion];
        if (completion === undefined || event.shiftKey) {
          this.closeCompletions();
          return false;
        }
        this.take(completion);
        return true;
      }
      case "Escape":
        this.closeCompletions();
        return true;
      default:
        return false;
    }
  }

  private highlight(index: number): void {
    this.completion = index;
    Array.from(this.completionsEl.children).forEach((option, at) => {
      option.setAttribute("aria-selected", String(at === index));
    });
    this.setActive();
  }

  private take(completion: Completion): void {
    const { value, selectionStart } = this.inputEl;
    const accepted = accept(value, selectionStart ?? value.length, completion);
    this.inputEl.value = accepted.query;
    this.inputEl.setSelectionRange(accepted.cursor, accepted.cursor);
    this.typed();
  }

  private closeCompletions(): void {
    this.completions = [];
    this.completion = -1;
    this.completionsEl.hide();
    this.inputEl.setAttr("aria-controls", this.listEl.id);
    this.setActive();
  }
}

/** The best hits, then those that an earlier, coarser search has besides. */
export function merged(best: SearchHit[], others: SearchHit[], most: number): SearchHit[] {
  const known = new Set(best.map(({ path }) => path));
  return [...best, ...others.filter(({ path }) => !known.has(path))].slice(0, most);
}

/** The missing parts of the index, in words. */
export function coverageOf({ notes, unread, passages, pending, isCurrent }: Coverage): string[] {
  const parts: string[] = [];
  if (unread > 0) parts.push(`${counted(unread, "note")} of ${(notes + unread).toLocaleString("en")} not read yet`);
  if (pending > 0) parts.push(`meaning known for ${Math.floor((100 * (passages - pending)) / Math.max(1, passages))} % of the text so far`);
  if (!isCurrent) parts.push("the index is being updated");
  return parts;
}
