// The field for a message: what is shared with it, commands and notes that are completed, sending and stopping.

import { Notice, type App } from "obsidian";
import type { AvailableCommand } from "../agent/acp";
import type { Message } from "../conversation/conversation";
import { nameOf, noteToShare, pictureToShare, selectionIn, selectionToShare, type Selection, type Shared } from "../conversation/context";
import { baseName, noteName, visible } from "./text";

/** The most completions that are offered. */
const MOST = 8;

/** Rows of the field. */
const MOST_ROWS = 12;

/** The largest picture. */
const LARGEST_PICTURE = 5_000_000;

export interface ComposerOwner {
  app: App;
  /** The vault's folder. */
  folder: string;
  commands(): AvailableCommand[];
  send(message: Message): void;
  stop(): void;
  /** The selection that `/plan` reads; null if there is none. */
  selection(): Selection | null;
  /** The field has the focus: a conversation is about to begin. */
  focused(): void;
}

interface Choice {
  label: string;
  detail: string;
  take(): void;
}

let number = 0;

export class Composer {
  readonly inputEl: HTMLTextAreaElement;
  private readonly sharedEl: HTMLElement;
  private readonly choicesEl: HTMLElement;
  /** The parts of the editor that the message makes the model read, besides those that are shared with it. */
  private readonly readsEl: HTMLElement;
  private readonly stopButton: HTMLButtonElement;
  private readonly sendButton: HTMLButtonElement;
  private readonly id = `vault-agent-composer-${++number}`;
  private shared: Shared[] = [];
  private choices: Choice[] = [];
  private choice = -1;
  /** The selection when the editor had the focus last: it is gone in reading view after a click elsewhere. */
  private selection: Selection | null = null;
  private lastSent = "";

  constructor(
    parent: HTMLElement,
    private readonly owner: ComposerOwner,
  ) {
    const box = parent.createDiv({ cls: "vault-agent-composer" });
    this.sharedEl = box.createDiv({ cls: "vault-agent-shared" });
    const field = box.createDiv({ cls: "vault-agent-search-box" });
    this.choicesEl = field.createDiv({ cls: "vault-agent-completions is-above", attr: { role: "listbox", "aria-label": "Completions", id: `${this.id}-choices` } });
    this.choicesEl.hide();
    this.inputEl = field.createEl("textarea", {
      placeholder: "Ask, or tell what to do. / commands, @ notes",
      attr: { rows: "2", "aria-label": "Message", "aria-autocomplete": "list", "aria-haspopup": "listbox" },
    });
    this.readsEl = box.createDiv({ cls: "vault-agent-muted" });
    this.readsEl.hide();
    const buttons = box.createDiv({ cls: "vault-agent-buttons" });
    const button = (text: string, act: () => void, cls = "") => {
      const element = buttons.createEl("button", { text, cls, attr: { type: "button" } });
      element.addEventListener("click", act);
      return element;
    };
    button("Use selection", () => this.useSelection());
    button("Use open note", () => void this.useOpenNote());
    this.stopButton = button("Stop", () => owner.stop());
    this.sendButton = button("Send", () => this.send(), "mod-cta");
    this.inputEl.addEventListener("input", () => this.typed());
    this.inputEl.addEventListener("keydown", (event) => this.key(event));
    this.inputEl.addEventListener("blur", () => this.closeChoices());
    this.inputEl.addEventListener("focus", () => owner.focused());
    this.inputEl.addEventListener("paste", (event) => void this.paste(event));
    this.setRunning(false);
  }

  /** Remembers the selection of the editor, before the focus leaves it. */
  rememberSelection(): void {
    this.selection = selectionIn(this.owner.app) ?? this.selection;
  }

  setRunning(isRunning: boolean): void {
    this.stopButton.toggle(isRunning);
    this.sendButton.setText(isRunning ? "Send next" : "Send");
  }

  focus(): void {
    this.inputEl.focus();
  }

  /** Puts a message back into the field with what was shared with it, before what is there. */
  putBack({ text, shared }: Message): void {
    this.inputEl.value = this.inputEl.value === "" ? text : `${text}\n${this.inputEl.value}`;
    this.shared = [...shared, ...this.shared.filter(({ key }) => !shared.some((item) => item.key === key))];
    this.drawShared();
    this.grow();
  }

  // Shared context

  private add(item: Shared): void {
    this.shared = [...this.shared.filter(({ key }) => key !== item.key), item];
    this.drawShared();
  }

  useSelection(): void {
    const selection = selectionIn(this.owner.app) ?? this.selection;
    if (selection === null) {
      new Notice("Select text in a note in editing view first.");
      return;
    }
    this.selection = null;
    this.add(selectionToShare(this.owner.folder, selection));
    this.focus();
  }

  async useOpenNote(): Promise<void> {
    const file = this.owner.app.workspace.getActiveFile();
    if (file === null) new Notice("Open a note first.");
    else await this.shareNote(file.path);
  }

  private async shareNote(path: string): Promise<void> {
    const item = await noteToShare(this.owner.app, this.owner.folder, path);
    if (item !== null) this.add(item);
    this.focus();
  }

  private async paste(event: ClipboardEvent): Promise<void> {
    const files = Array.from(event.clipboardData?.files ?? []).filter(({ type }) => type.startsWith("image/"));
    if (files.length === 0) return;
    event.preventDefault();
    for (const file of files) {
      if (file.size > LARGEST_PICTURE) new Notice("The picture is too large.");
      else this.add(await pictureToShare(file));
    }
  }

  private drawShared(): void {
    this.sharedEl.empty();
    if (this.shared.length === 0) return;
    const head = this.sharedEl.createDiv({ cls: "vault-agent-ticks" });
    head.createSpan({ text: "Sent with this message, if ticked:" });
    if (this.shared.length > 1) {
      for (const [text, isTicked] of [["All", true], ["None", false]] as const) {
        head.createEl("button", { text, attr: { type: "button", "aria-label": `${text} of what is sent` } }).addEventListener("click", () => {
          for (const item of this.shared) item.isTicked = isTicked;
          this.drawShared();
        });
      }
    }
    for (const item of this.shared) {
      const row = this.sharedEl.createDiv({ cls: "vault-agent-part" });
      const box = row.createEl("input", { type: "checkbox", attr: { "aria-label": visible(`Send ${item.label}`) } });
      box.checked = item.isTicked;
      box.addEventListener("change", () => {
        item.isTicked = box.checked;
      });
      const details = row.createEl("details", { cls: "vault-agent-file" });
      details.createEl("summary", { text: visible(item.label) });
      details.createEl("pre", { text: visible(item.preview), attr: { tabindex: "0", "aria-label": "The text that is sent" } });
      const remove = row.createEl("button", { text: "×", attr: { type: "button", "aria-label": visible(`Remove ${item.label}`) } });
      remove.addEventListener("click", () => {
        this.shared = this.shared.filter((other) => other !== item);
        this.drawShared();
        this.focus();
      });
    }
  }

  // Sending

  send(): void {
    const text = this.inputEl.value.trim();
    if (text === "") return;
    const ticked = this.shared.filter(({ isTicked }) => isTicked);
    this.lastSent = text;
    this.inputEl.value = "";
    this.shared = [];
    this.drawShared();
    this.closeChoices();
    this.showReads();
    this.grow();
    this.owner.send({ text, shared: ticked });
  }

  private grow(): void {
    this.inputEl.rows = Math.min(MOST_ROWS, Math.max(2, this.inputEl.value.split("\n").length));
  }

  // Keys and completions

  private key(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (this.choices.length > 0 && this.choiceKey(event.key)) return event.preventDefault();
    if (event.key === "Enter" && !event.shiftKey) {
      // A key that is held down sends once.
      if (!event.repeat) this.send();
    } else if (event.key === "ArrowUp" && this.inputEl.value === "" && this.lastSent !== "") this.putBack({ text: this.lastSent, shared: [] });
    else if (event.key === "Escape") this.owner.stop();
    else return;
    event.preventDefault();
  }

  private typed(): void {
    this.grow();
    const before = this.inputEl.value.slice(0, this.inputEl.selectionStart);
    this.showReads();
    const command = /^\/(\w*)$/.exec(before);
    const mention = /(?:^|\s)@([^\s@][^\n@]{0,60})?$/.exec(before);
    if (command !== null) this.offer(this.commandChoices(command[1] ?? ""));
    else if (mention !== null) this.offer(this.noteChoices(mention[1] ?? ""));
    else this.closeChoices();
  }

  /** A plan is written with the selection of the editor, so that is said before it is sent. */
  private showReads(): void {
    const isPlan = /^\/plan\s/.test(this.inputEl.value);
    this.readsEl.toggle(isPlan);
    if (!isPlan) return;
    const selection = this.owner.selection();
    this.readsEl.setText(visible(`With /plan, the model is sent the path of the open note and ${selection === null ? "no text, since nothing is selected" : `your selection: ${nameOf(selection)}`}.`));
  }

  private commandChoices(begin: string): Choice[] {
    const found = this.owner.commands().filter(({ name }) => name.startsWith(begin.toLowerCase()));
    return found.map(({ name, description, input }) => ({
      label: `/${name}`,
      detail: description,
      take: () => this.replace(`/${begin}`, input?.hint === undefined ? `/${name}` : `/${name} `),
    }));
  }

  private noteChoices(part: string): Choice[] {
    const wanted = part.toLowerCase();
    const files = this.owner.app.vault.getMarkdownFiles().filter(({ path }) => path.toLowerCase().includes(wanted));
    const rank = (path: string) => (baseName(path).toLowerCase().startsWith(wanted) ? 0 : 1);
    files.sort((a, b) => rank(a.path) - rank(b.path) || a.path.length - b.path.length);
    return files.slice(0, MOST).map(({ path }) => ({
      label: baseName(path),
      detail: noteName(path),
      take: () => {
        this.replace(`@${part}`, `[[${baseName(path)}]] `);
        void this.shareNote(path);
      },
    }));
  }

  /** Replaces the text before the cursor. */
  private replace(before: string, text: string): void {
    const at = this.inputEl.selectionStart - before.length;
    this.inputEl.setRangeText(text, at, this.inputEl.selectionStart, "end");
    this.closeChoices();
    this.grow();
  }

  private offer(choices: Choice[]): void {
    this.choices = choices.slice(0, MOST);
    this.choice = -1;
    this.choicesEl.empty();
    this.inputEl.removeAttribute("aria-activedescendant");
    this.choices.forEach((choice, index) => {
      const option = this.choicesEl.createDiv({ cls: "vault-agent-completion", attr: { role: "option", id: `${this.id}-choice-${index}`, "aria-selected": "false" } });
      option.createSpan({ text: visible(choice.label) });
      option.createSpan({ cls: "vault-agent-muted", text: visible(choice.detail) });
      option.addEventListener("mousedown", (event) => {
        event.preventDefault();
        choice.take();
      });
    });
    if (this.choices.length === 0) return this.closeChoices();
    this.choicesEl.show();
    this.inputEl.setAttr("aria-controls", this.choicesEl.id);
  }

  private choiceKey(key: string): boolean {
    const last = this.choices.length - 1;
    if (key === "ArrowDown") this.highlight(this.choice >= last ? 0 : this.choice + 1);
    else if (key === "ArrowUp") this.highlight(this.choice <= 0 ? last : this.choice - 1);
    else if (key === "Escape") this.closeChoices();
    else if (key === "Tab" || key === "Enter") {
      // Enter sends a command that is typed as a whole.
      const typed = this.inputEl.value.trim();
      if (key === "Enter" && this.choice < 0 && this.choices.some(({ label }) => label === typed)) return false;
      this.choices[Math.max(0, this.choice)]?.take();
    } else return false;
    return true;
  }

  private highlight(index: number): void {
    this.choice = index;
    Array.from(this.choicesEl.children).forEach((option, at) => {
      option.setAttribute("aria-selected", String(at === index));
      if (at === index) this.inputEl.setAttr("aria-activedescendant", option.id);
    });
  }

  private closeChoices(): void {
    this.choices = [];
    this.choicesEl.hide();
    this.inputEl.removeAttribute("aria-activedescendant");
    this.inputEl.removeAttribute("aria-controls");
  }
}
