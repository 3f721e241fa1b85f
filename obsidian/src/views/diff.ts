// Unified diffs as lines, and as elements.

import { visible } from "./text";

export type DiffLine =
  | { kind: "added" | "removed" | "same"; number: number; text: string }
  /** Lines that are left out. */
  | { kind: "gap" };

/** How many lines of a file are shown at first. */
const SHOWN = 300;

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** The lines of a unified diff of one file, each with its number in the file that it stands in. */
export function diffLines(diff: string): DiffLine[] {
  const lines: DiffLine[] = [];
  let [before, after] = [0, 0];
  let isInHunk = false;
  for (const line of diff.split("\n")) {
    const hunk = HUNK.exec(line);
    if (hunk !== null) {
      if (isInHunk || Number(hunk[1]) > 1) lines.push({ kind: "gap" });
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
      isInHunk = true;
    } else if (isInHunk && line !== "") {
      const text = line.slice(1);
      if (line.startsWith("+")) lines.push({ kind: "added", number: after++, text });
      else if (line.startsWith("-")) lines.push({ kind: "removed", number: before++, text });
      else if (line.startsWith(" ")) {
        lines.push({ kind: "same", number: after++, text });
        before++;
      }
    }
  }
  return lines;
}

const SIGNS = { added: "+", removed: "-", same: " " } as const;
const SPOKEN = { added: "added: ", removed: "removed: ", same: "" } as const;

/** Shows a diff. A long one is cut, with a button for the rest. */
export function showDiff(parent: HTMLElement, diff: string): void {
  const lines = diffLines(diff);
  const box = parent.createDiv({ cls: "vault-agent-diff", attr: { tabindex: "0", role: "group", "aria-label": "Changed lines" } });
  const show = (some: DiffLine[]) => {
    for (const line of some) {
      if (line.kind === "gap") {
        box.createDiv({ cls: "vault-agent-diff-gap", text: "⋯", attr: { "aria-hidden": "true" } });
        continue;
      }
      const row = box.createDiv({ cls: `vault-agent-diff-line is-${line.kind}` });
      row.createSpan({ cls: "vault-agent-diff-number", text: String(line.number), attr: { "aria-hidden": "true" } });
      row.createSpan({ cls: "vault-agent-diff-sign", text: SIGNS[line.kind], attr: { "aria-hidden": "true" } });
      const text = row.createSpan({ cls: "vault-agent-diff-text" });
      if (SPOKEN[line.kind] !== "") text.createSpan({ cls: "vault-agent-spoken", text: SPOKEN[line.kind] });
      text.appendText(visible(line.text));
    }
  };
  show(lines.slice(0, SHOWN));
  if (lines.length > SHOWN) {
    const more = parent.createEl("button", { text: `Show ${lines.length - SHOWN} more lines`, attr: { type: "button" } });
    more.addEventListener("click", () => {
      more.remove();
      show(lines.slice(SHOWN));
    });
  }
}
