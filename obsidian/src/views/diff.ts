// Unified diffs as lines, and as elements.

import type { Segment } from "../protocol";
import { counted, visible } from "./text";
import { drawOnPress } from "./undrawn";
import { differingWords } from "./words";

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

/** For lines that replace others, the words that differ, by the position of the line. */
export function markedWords(lines: DiffLine[]): Map<number, Segment[]> {
  const marked = new Map<number, Segment[]>();
  for (let at = 0; at < lines.length; ) {
    let added = at;
    while (lines[added]?.kind === "removed") added++;
    let end = added;
    while (lines[end]?.kind === "added") end++;
    for (let line = 0; line < Math.min(added - at, end - added); line++) {
      const [before, after] = [lines[at + line], lines[added + line]];
      const words = before === undefined || after === undefined || before.kind === "gap" || after.kind === "gap" ? null : differingWords(before.text, after.text);
      if (words !== null) marked.set(at + line, words.before).set(added + line, words.after);
    }
    at = Math.max(end, at + 1);
  }
  return marked;
}

const SIGNS = { added: "+", removed: "-", same: " " } as const;
const SPOKEN = { added: "added: ", removed: "removed: ", same: "" } as const;

/** Shows a diff. A long one is cut, with a button for the rest. */
export function showDiff(parent: HTMLElement, diff: string): void {
  const lines = diffLines(diff);
  const box = parent.createDiv({ cls: "vault-agent-diff", attr: { tabindex: "0", role: "group", "aria-label": "Changed lines" } });
  const marked = markedWords(lines);
  const show = (from: number, until: number) => {
    for (let at = from; at < until; at++) {
      const line = lines[at];
      if (line === undefined) return;
      if (line.kind === "gap") {
        box.createDiv({ cls: "vault-agent-diff-gap", text: "⋯", attr: { "aria-hidden": "true" } });
        continue;
      }
      const row = box.createDiv({ cls: `vault-agent-diff-line is-${line.kind}` });
      row.createSpan({ cls: "vault-agent-diff-number", text: String(line.number), attr: { "aria-hidden": "true" } });
      row.createSpan({ cls: "vault-agent-diff-sign", text: SIGNS[line.kind], attr: { "aria-hidden": "true" } });
      const text = row.createSpan({ cls: "vault-agent-diff-text" });
      if (SPOKEN[line.kind] !== "") text.createSpan({ cls: "vault-agent-spoken", text: SPOKEN[line.kind] });
      for (const piece of marked.get(at) ?? [{ text: line.text, isMatch: false }]) {
        if (piece.isMatch) text.createSpan({ cls: "vault-agent-word", text: visible(piece.text) });
        else text.appendText(visible(piece.text));
      }
    }
  };
  show(0, SHOWN);
  if (lines.length > SHOWN) drawOnPress(parent, `Show ${counted(lines.length - SHOWN, "more line")}`, () => show(SHOWN, lines.length));
}
