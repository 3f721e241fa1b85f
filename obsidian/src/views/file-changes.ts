// The files of a change, with diffs. Used for changes that are about to be made and for those that were made.

import type { FileChange, FolderChange } from "../protocol";
import { showDiff } from "./diff";
import { counted, visible } from "./text";

/** How many files are shown at first, and how many of them with their diff open. */
const SHOWN = 100;
const OPEN = 5;

/** The files of a change, all of them reachable. */
export interface FileChanges {
  files: FileChange[];
  folders: FolderChange[];
  notices: string[];
}

const DONE = { created: "Created", modified: "Changed", renamed: "Moved", deleted: "Deleted" } as const;

/** The path of a file as one line, with the path that it moves to. */
export function pathLine(file: FileChange): string {
  const to = file.to === null || file.to === undefined ? "" : ` → ${file.to}`;
  return visible(`${file.path}${to}`);
}

function showFile(parent: HTMLElement, file: FileChange, isOpen: boolean): void {
  const details = parent.createEl("details", { cls: "vault-agent-file" });
  const summary = details.createEl("summary");
  summary.createSpan({ cls: `vault-agent-kind is-${file.kind}`, text: DONE[file.kind] });
  summary.createSpan({ cls: "vault-agent-path", text: pathLine(file) });
  if (file.added + file.removed > 0) {
    summary.createSpan({ cls: "vault-agent-count", text: `+${file.added} −${file.removed}` });
  }
  const show = () => {
    if (details.childElementCount > 1) return;
    if (file.diff !== null && file.diff !== undefined) showDiff(details, file.diff);
    else if (file.inside.length > 0) details.createDiv({ cls: "vault-agent-muted", text: `With ${counted(file.inside.length, "file")} in it.` });
    else details.createDiv({ cls: "vault-agent-muted", text: "Its text stays as it is." });
  };
  // Only diffs that are looked at are drawn: a change can have thousands of files.
  if (isOpen) {
    details.open = true;
    show();
  }
  details.addEventListener("toggle", show);
}

/** Shows the files of a change. */
export function showFileChanges(parent: HTMLElement, change: FileChanges): void {
  for (const notice of change.notices) parent.createDiv({ cls: "vault-agent-notice", text: visible(notice) });
  for (const folder of change.folders) {
    const what = folder.kind === "deleted" ? "Removed folder" : "New folder";
    parent.createDiv({ cls: "vault-agent-folder", text: visible(`${what}: ${folder.path}`) });
  }
  const list = parent.createDiv({ cls: "vault-agent-files" });
  const show = (from: number) => {
    const until = Math.min(change.files.length, from + SHOWN);
    change.files.slice(from, until).forEach((file, index) => showFile(list, file, from + index < OPEN));
    if (until < change.files.length) {
      const left = change.files.length - until;
      const more = list.createEl("button", { text: `Show ${counted(left, "more file", "more files")}`, attr: { type: "button" } });
      more.addEventListener("click", () => {
        more.remove();
        show(until);
      });
    }
  };
  show(0);
  if (change.files.length === 0 && change.folders.length === 0 && change.notices.length === 0) {
    parent.createDiv({ cls: "vault-agent-muted", text: "Nothing changes." });
  }
}
