// The files of a change, with diffs. Used for changes that are about to be made and for those that were made.

import type { FileChange, FolderChange } from "../protocol";
import { showDiff } from "./diff";
import { visible } from "./text";
import { drawOnOpen, drawRows } from "./undrawn";

/** How many files are shown at first, and how many of them with their diff open. */
export const SHOWN = 100;
export const OPEN = 20;

/** The files of a change, all of them reachable. */
export interface FileChanges {
  files: FileChange[];
  folders: FolderChange[];
  notices: string[];
}

export const NO_TEXT = "It is empty or not a text.";

const DONE = { created: "Created", modified: "Changed", renamed: "Moved", deleted: "Deleted" } as const;

/** The path of a file as one line, with the path that it moves to. */
export function pathLine(file: FileChange): string {
  const to = file.to === null || file.to === undefined ? "" : ` → ${file.to}`;
  return visible(`${file.path}${to}`);
}

function showFile(parent: HTMLElement, file: FileChange, isOpen: boolean): void {
  const details = parent.createEl("details", { cls: "vault-agent-file" });
  const summary = details.createEl("summary");
  const isForGood = file.kind === "deleted" && (file.to === null || file.to === undefined);
  summary.createSpan({ cls: `vault-agent-kind is-${file.kind}`, text: isForGood ? "Deleted for good" : DONE[file.kind] });
  summary.createSpan({ cls: "vault-agent-path", text: pathLine(file) });
  if (file.added + file.removed > 0) {
    summary.createSpan({ cls: "vault-agent-count", text: `+${file.added} −${file.removed}` });
  }
  const { diff, inside } = file;
  const line = (text: string) => details.createDiv({ cls: "vault-agent-muted", text: visible(text) });
  // Only diffs that are looked at are drawn: a change can have thousands of files.
  if (diff !== null && diff !== undefined) drawOnOpen(details, isOpen, () => showDiff(details, diff));
  else if (inside.length > 0) drawOnOpen(details, isOpen, () => drawRows(details, inside.length, SHOWN, "more file", (at) => line(inside[at] ?? "")));
  else line(file.kind === "renamed" ? "Its text stays as it is." : NO_TEXT);
}

/** Shows the files of a change. */
export function showFileChanges(parent: HTMLElement, change: FileChanges): void {
  for (const notice of change.notices) parent.createDiv({ cls: "vault-agent-notice", text: visible(notice) });
  for (const folder of change.folders) {
    const what = folder.kind === "deleted" ? "Removed folder" : "New folder";
    parent.createDiv({ cls: "vault-agent-folder", text: visible(`${what}: ${folder.path}`) });
  }
  const list = parent.createDiv({ cls: "vault-agent-files" });
  drawRows(list, change.files.length, SHOWN, "more file", (at) => {
    const file = change.files[at];
    if (file !== undefined) showFile(list, file, at < OPEN);
  });
  if (change.files.length === 0 && change.folders.length === 0 && change.notices.length === 0) {
    parent.createDiv({ cls: "vault-agent-muted", text: "Nothing changes." });
  }
}
