// The app as the host around the vault: answers what the program asks about the editor and the commands, shows notes, and
// makes approved edits in the editor of their note. The program reads the file after each edit, and trusts nothing else.

import { MarkdownView, type App, type Editor, type EditorPosition } from "obsidian";
import { linesOf, type Selection } from "./conversation/context";
import { lastEditor, openNote, saveEditors } from "./notes";
import type { AppCommand, HostEditRequest, HostMethods, HostOpenRequest, HostSelection, HostState, HostStateRequest } from "./protocol";

/** How long the app may take to notice a file that the program has made. */
const NOTICED_MS = 3_000;

/** The app's commands, which its types do not declare. */
interface AppWithCommands {
  commands?: { commands?: Record<string, { id: string; name?: string }>; executeCommandById?(id: string): boolean };
}

/** A selection, with its note. */
interface RememberedSelection extends HostSelection {
  path: string;
}

type Answers = { [Method in keyof HostMethods]: (params: HostMethods[Method]["params"], signal: AbortSignal) => HostMethods[Method]["result"] | Promise<HostMethods[Method]["result"]> };

export class AppHost {
  /** The selection when the focus left the editor: some of them forget it then. */
  private remembered: RememberedSelection | null = null;
  private readonly answers: Answers = {
    "_vault/host/state": (params) => this.state(params),
    "_vault/host/open_files": ({ mostFiles }) => ({ files: this.openFiles().slice(0, mostFiles) }),
    "_vault/host/open": (params, signal) => this.open(params, signal),
    "_vault/host/commands": ({ mostCommands }) => ({ commands: this.commands().slice(0, mostCommands) }),
    "_vault/host/run_command": ({ id }) => ({ ran: this.run(id) }),
    "_vault/host/edit": (params, signal) => this.edit(params, signal),
  };

  constructor(
    private readonly app: App,
    /** The id of this plugin. Its own commands are not the program's to run: they open dialogs, and one restarts it. */
    private readonly pluginId: string,
  ) {}

  /** Answers a request of the program, or is null for a method that is not one of a host. */
  asked(method: string, params: unknown, signal: AbortSignal): Promise<unknown> | null {
    if (!Object.hasOwn(this.answers, method)) return null;
    const answer = this.answers[method as keyof Answers] as (params: unknown, signal: AbortSignal) => unknown;
    // The types of both sides are generated from one schema, and the version was declared.
    return Promise.resolve().then(() => answer(params, signal));
  }

  /** Remembers the selection of the editor that loses the focus, or that there is none. */
  remember(): void {
    const view = editing(this.app);
    this.remembered = view === null ? null : selectionOf(view);
  }

  /** The same if the editor has the focus: a press elsewhere is about to take it. */
  rememberIfFocused(): void {
    if (editing(this.app)?.editor.hasFocus() === true) this.remember();
  }

  private async state({ longestSelection, mostFiles }: HostStateRequest): Promise<HostState> {
    const openFiles = this.openFiles().slice(0, mostFiles);
    const view = editing(this.app);
    const path = view?.file?.path ?? this.app.workspace.getActiveFile()?.path ?? null;
    if (view === null || path === null) return { activeFile: path, selection: null, cursor: null, openFiles };
    await this.saveTyped(view, path);
    // The selection and the cursor would be those of another note.
    if (view.file?.path !== path) throw new Error("the editor shows another note now");
    const selection = this.selectionIn(view);
    if (selection !== null && selection.text.length > longestSelection) throw new Error(`the selection has more than ${longestSelection} characters`);
    const shown = selection === null ? null : { text: selection.text, from: selection.from, to: selection.to };
    return { activeFile: path, selection: shown, cursor: positionOf(view.editor.getCursor(selection === null ? "head" : "to")), openFiles };
  }

  /** Saves what is typed: positions in the editor are positions in the file only if both have the same text. */
  private async saveTyped(view: MarkdownView, path: string): Promise<void> {
    const file = this.app.vault.getFileByPath(path);
    // The editor knows one kind of line end.
    const isSaved = file !== null && (await this.app.vault.read(file)).replace(/\r\n?/g, "\n") === view.editor.getValue();
    if (!isSaved) await saveEditors(this.app, new Set([path]));
  }

  /** The selection of the editor, which the program can read; null if there is none. */
  get selection(): Selection | null {
    const view = editing(this.app);
    const selection = view === null ? null : this.selectionIn(view);
    return selection === null ? null : { path: selection.path, text: selection.text, ...linesOf(selection.from, selection.to) };
  }

  private selectionIn(view: MarkdownView): RememberedSelection | null {
    return selectionOf(view) ?? this.rememberedIn(view);
  }

  private rememberedIn(view: MarkdownView): RememberedSelection | null {
    const { remembered } = this;
    if (remembered === null || remembered.path !== view.file?.path || view.editor.hasFocus()) return null;
    return view.editor.getRange(remembered.from, remembered.to) === remembered.text ? remembered : null;
  }

  private views(): MarkdownView[] {
    const views: MarkdownView[] = [];
    this.app.workspace.iterateAllLeaves(({ view }) => {
      if (view instanceof MarkdownView && view.file !== null) views.push(view);
    });
    return views;
  }

  private openFiles(): string[] {
    return [...new Set(this.views().flatMap(({ file }) => (file === null ? [] : [file.path])))];
  }

  private async open({ path, line, inNewTab }: HostOpenRequest, signal: AbortSignal): Promise<{ opened: boolean }> {
    const isThere = await this.noticed(path, signal);
    if (isThere) await openNote(this.app, path, line ?? null, inNewTab);
    return { opened: isThere };
  }

  /** Waits for the app to notice a file that was just made. */
  private noticed(path: string, signal: AbortSignal): Promise<boolean> {
    const { vault } = this.app;
    if (vault.getFileByPath(path) !== null) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (isThere: boolean) => {
        window.clearTimeout(timer);
        vault.offref(created);
        signal.removeEventListener("abort", abort);
        resolve(isThere);
      };
      const abort = () => end(false);
      const timer = window.setTimeout(abort, NOTICED_MS);
      const created = vault.on("create", (file) => {
        if (file.path === path) end(true);
      });
      signal.addEventListener("abort", abort);
    });
  }

  private commands(): AppCommand[] {
    const { commands } = this.app as App & AppWithCommands;
    const all = Object.values(commands?.commands ?? {}).map(({ id, name }) => ({ id, name: name ?? id }));
    return all.filter(({ id }) => !this.isOwn(id));
  }

  private isOwn(id: string): boolean {
    return id.startsWith(`${this.pluginId}:`);
  }

  private run(id: string): boolean {
    const { commands } = this.app as App & AppWithCommands;
    if (this.isOwn(id)) return false;
    // Commands act on the editor that has the focus, which the side bar has now.
    const { workspace } = this.app;
    const leaf = workspace.getMostRecentLeaf();
    if (leaf !== null) workspace.setActiveLeaf(leaf, { focus: true });
    return commands?.executeCommandById?.(id) ?? false;
  }

  /**
   * Makes an edit in the editor of a note, in one transaction, so that one step of the app's undo reverts it, and saves
   * it. An editor with other text than the program read is saved: the program then finds the change in the file, and
   * leaves it alone.
   */
  private async edit({ path, before, after }: HostEditRequest, signal: AbortSignal): Promise<{ edited: boolean }> {
    const last = editing(this.app);
    const view = last?.file?.path === path ? last : this.views().find((view) => view.file?.path === path && view.getMode() === "source");
    // A request that was withdrawn is too late: the program has written the file.
    if (view === undefined || signal.aborted) return { edited: false };
    const { editor } = view;
    if (editor.getValue() !== before) {
      await this.saveTyped(view, path);
      return { edited: false };
    }
    replace(editor, before, after);
    if (await this.isSaved(view, path, after)) return { edited: true };
    // The program writes the file. An editor that had the edit as well, not saved, could make it a second time.
    if (editor.getValue() === after) replace(editor, after, before);
    return { edited: false };
  }

  private async isSaved(view: MarkdownView, path: string, text: string): Promise<boolean> {
    try {
      await view.save();
      const file = this.app.vault.getFileByPath(path);
      return file !== null && (await this.app.vault.read(file)) === text;
    } catch {
      return false;
    }
  }
}

/** The editor that was used last, unless it is in reading view. */
function editing(app: App): MarkdownView | null {
  const view = lastEditor(app);
  return view !== null && view.file !== null && view.getMode() === "source" ? view : null;
}

function positionOf({ line, ch }: EditorPosition): EditorPosition {
  return { line, ch };
}

function selectionOf({ editor, file }: MarkdownView): RememberedSelection | null {
  const text = editor.getSelection();
  if (file === null || text === "") return null;
  return { path: file.path, text, from: positionOf(editor.getCursor("from")), to: positionOf(editor.getCursor("to")) };
}

/** Replaces the part of an editor's text that differs, in one transaction. */
function replace(editor: Editor, before: string, after: string): void {
  const { start, end, text } = changedRange(before, after);
  editor.transaction({ changes: [{ from: editor.offsetToPos(start), to: editor.offsetToPos(end), text }] });
}

const isHigh = (unit: number) => unit >= 0xd800 && unit < 0xdc00;

/** The smallest range of a text that differs from another, and its new text. No pair of surrogates is divided. */
export function changedRange(before: string, after: string): { start: number; end: number; text: string } {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before.charCodeAt(start) === after.charCodeAt(start)) start++;
  if (start > 0 && isHigh(before.charCodeAt(start - 1))) start--;
  let same = 0;
  while (same < shorter - start && before.charCodeAt(before.length - 1 - same) === after.charCodeAt(after.length - 1 - same)) same++;
  if (same > 0 && isHigh(before.charCodeAt(before.length - 1 - same))) same--;
  return { start, end: before.length - same, text: after.slice(start, after.length - same) };
}
