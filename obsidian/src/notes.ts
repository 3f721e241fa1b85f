// Notes in the app: opened at a line, linked from the editor, saved before a change.

import { MarkdownView, Notice, type App, type TFile } from "obsidian";
import { baseName } from "./views/text";

/** Opens a note at a line, which counts from 1. */
export async function openNote(app: App, path: string, line: number | null, inNewTab: boolean): Promise<void> {
  const file = app.vault.getFileByPath(path);
  if (file === null) {
    new Notice(`${path} is not in this vault any more.`);
    return;
  }
  const eState = line === null ? {} : { line: line - 1 };
  await app.workspace.getLeaf(inNewTab ? "tab" : false).openFile(file, { active: true, eState });
}

/** A link to a note, written as the settings of the app say. */
export function linkTo(app: App, path: string, from: string): string {
  const file = app.vault.getFileByPath(path);
  return file === null ? `[[${baseName(path)}]]` : app.fileManager.generateMarkdownLink(file, from);
}

/** The editor that was used last: the side bar has the focus now. */
export function lastEditor(app: App): MarkdownView | null {
  const view = app.workspace.getMostRecentLeaf()?.view;
  return view instanceof MarkdownView ? view : null;
}

/** Inserts a link to a note at the cursor of the editor that was used last. */
export function insertLink(app: App, path: string): void {
  const view = lastEditor(app);
  if (view === null || view.getMode() !== "source") {
    new Notice("Open a note in editing view first: the link goes to where you type.");
    return;
  }
  view.editor.replaceSelection(linkTo(app, path, view.file?.path ?? ""));
  view.editor.focus();
}

/** Saves the open editors of some files, so that the program reads what the person sees. Returns whether a file changed by that. */
export async function saveEditors(app: App, paths: ReadonlySet<string>): Promise<boolean> {
  const saving: Array<Promise<boolean>> = [];
  const save = async (view: MarkdownView, file: TFile) => {
    const read = () => app.vault.read(file).catch(() => null);
    const before = await read();
    await view.save();
    return (await read()) !== before;
  };
  app.workspace.iterateAllLeaves((leaf) => {
    const { view } = leaf;
    if (view instanceof MarkdownView && view.file !== null && paths.has(view.file.path)) saving.push(save(view, view.file));
  });
  return (await Promise.all(saving)).some((changed) => changed);
}
