// Markdown of a model or a note, made safe for the app's renderer: it can hold anything, and the renderer runs plugins on
// code blocks, loads pictures and passes HTML on. Code is rendered as a placeholder and put back as text; HTML, embeds,
// math and comments become text; places such as [Note.md:3] become links that open the note at the line.

import { visible } from "../views/text";

/** A place in a note, as answers cite it. */
export interface Source {
  path: string;
  line: number;
}

/** A part that is put back after rendering. */
export type Piece = { kind: "code"; text: string } | { kind: "sources"; sources: Source[] };

export interface Guarded {
  markdown: string;
  pieces: Piece[];
  /** Matches the placeholder of a piece; its group is the piece's position. */
  placeholder: RegExp;
}

/** List markers and quotes before a line's text. */
const CONTAINERS = /^(?:[ \t]|>|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t]))*/;
const FENCE = /^(`{3,}|~{3,})(.*)$/;
// A path begins with neither a space nor a separator, so that each text is read in one way only. Answers can be hostile,
// and two ways for each place would make an exponential number for all of them.
const PLACE = String.raw`([^\s\[\]()\n:;,|#\x60][^\[\]()\n:;|#\x60]*\.[A-Za-z]{1,8}):(\d{1,7})(?:[-–]\d{1,7})?`;
const NEXT_PLACE = new RegExp(String.raw`(?:\s*[;,])?\s*${PLACE}`, "y");
const ONE_PLACE = new RegExp(`^${PLACE}$`);
const CITATION = new RegExp(String.raw`\[\s*${PLACE}(?:\s*[;,]\s*${PLACE})*\](?!\()`, "g");

/** Longer code is no place in a note. */
const LONGEST_PLACE = 1_000;

/** A word that no text holds. */
function newNonce(): string {
  return `va${Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => String.fromCharCode(97 + (byte % 26))).join("")}`;
}

function sourceOf([, path = "", line = "1"]: RegExpMatchArray): Source {
  return { path, line: Number(line) };
}

/** The places of a citation without its brackets, separated by `;` or `,`. */
export function sourcesIn(text: string): Source[] {
  const sources: Source[] = [];
  NEXT_PLACE.lastIndex = 0;
  for (let place = NEXT_PLACE.exec(text); place !== null; place = NEXT_PLACE.exec(text)) sources.push(sourceOf(place));
  return sources;
}

/** The place that a text names, if it is nothing but one. */
export function placeIn(text: string): Source | null {
  const place = text.length > LONGEST_PLACE ? null : ONE_PLACE.exec(text);
  return place === null ? null : sourceOf(place);
}

const ENTITIES: Record<string, string> = { "<": "&lt;", "$": "&#36;", "`": "&#96;", "~": "&#126;", "!": "&#33;", "%": "&#37;" };

/** Characters that begin HTML, math, code, embeds and comments, as entities. */
function escaped(text: string): string {
  return text.replace(/[<$`]|~(?=~~)|!(?=\[)|%(?=%)/g, (character) => ENTITIES[character] ?? character);
}

/** Where the last run of each length of backticks begins in a line. */
function lastRuns(line: string): Map<number, number> {
  return new Map([...line.matchAll(/`+/g)].map(({ 0: { length }, index }) => [length, index]));
}

/** Where the next run of a length of backticks begins; there is one. */
function closingRun(line: string, from: number, length: number): number {
  const runs = /`+/g;
  runs.lastIndex = from;
  let run = runs.exec(line);
  while (run !== null && run[0].length !== length) run = runs.exec(line);
  return run?.index ?? line.length;
}

/** Whether code has a space on both sides, which are no part of it. */
function isPadded(text: string): boolean {
  return text.startsWith(" ") && text.endsWith(" ") && /[^ ]/.test(text);
}

export function guard(source: string, nonce = newNonce()): Guarded {
  const pieces: Piece[] = [];
  const placed = (piece: Piece) => `${nonce}${pieces.push(piece) - 1}x`;
  const outside = (text: string) => {
    let markdown = "";
    let from = 0;
    for (const citation of text.matchAll(CITATION)) {
      markdown += escaped(text.slice(from, citation.index)) + placed({ kind: "sources", sources: sourcesIn(citation[0].slice(1, -1)) });
      from = citation.index + citation[0].length;
    }
    return markdown + escaped(text.slice(from));
  };
  const inline = (line: string) => {
    let markdown = "";
    let from = 0;
    const ticks = /\\.|`+/g;
    const last = lastRuns(line);
    for (let opening = ticks.exec(line); opening !== null; opening = ticks.exec(line)) {
      if (opening[0].startsWith("\\")) continue;
      const begin = ticks.lastIndex;
      const { length } = opening[0];
      if ((last.get(length) ?? 0) < begin) continue;
      const closing = closingRun(line, begin, length);
      const text = line.slice(begin, closing);
      markdown += `${outside(line.slice(from, opening.index))}\`${placed({ kind: "code", text: isPadded(text) ? text.slice(1, -1) : text })}\``;
      from = closing + length;
      ticks.lastIndex = from;
    }
    return markdown + outside(line.slice(from));
  };
  const out: string[] = [];
  const block = (prefix: string, code: string[]) => {
    const next = prefix.replace(/[-+*\d.)]/g, " ");
    out.push(`${prefix}\`\`\``, `${next}${placed({ kind: "code", text: code.join("\n") })}`, `${next}\`\`\``);
  };
  const lines = visible(source).replaceAll("␍\n", "\n").split("\n");
  let isInList = false;
  let isAfterBlank = true;
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? "";
    const prefix = CONTAINERS.exec(line)?.[0] ?? "";
    const fence = FENCE.exec(line.slice(prefix.length));
    const run = fence?.[1] ?? "";
    if (fence !== null && !(run.startsWith("`") && fence[2]?.includes("`") === true)) {
      const code: string[] = [];
      const closes = new RegExp(`^[ \\t>]*${run[0]}{${run.length},}[ \\t]*$`);
      while (++at < lines.length && !closes.test(lines[at] ?? "")) code.push(withoutPrefix(lines[at] ?? "", prefix));
      block(prefix, code);
      isAfterBlank = true;
      continue;
    }
    if (/^(?: {4}|\t)/.test(line) && isAfterBlank && !isInList && line.trim() !== "") {
      const code: string[] = [];
      while (at < lines.length && (/^(?: {4}|\t)/.test(lines[at] ?? "") || (lines[at] ?? "").trim() === "")) code.push((lines[at++] ?? "").replace(/^(?: {4}|\t)/, ""));
      at--;
      block("", code.join("\n").trimEnd().split("\n"));
      out.push("");
      continue;
    }
    isAfterBlank = line.trim() === "";
    if (/^\s*(?:[-+*]|\d{1,9}[.)])[ \t]/.test(line)) isInList = true;
    else if (!isAfterBlank && /^\S/.test(line)) isInList = false;
    // A rule at the very beginning would begin properties, which are not shown.
    out.push(out.length === 0 && /^---\s*$/.test(line) ? "***" : inline(line));
  }
  return { markdown: out.join("\n"), pieces, placeholder: new RegExp(`${nonce}(\\d+)x`, "g") };
}

/** A line of a block in a list or a quote, without what makes it a part of that. */
function withoutPrefix(line: string, prefix: string): string {
  let at = 0;
  for (const character of prefix) {
    if (line[at] === character || (line[at] === " " && character !== ">")) at++;
    else break;
  }
  return line.slice(at);
}

/** Up to where a text that still grows is complete: the last empty line outside of code. */
export function completeUpTo(text: string): number {
  let end = 0;
  let at = 0;
  let open = "";
  for (const line of text.split("\n")) {
    const next = at + line.length + 1;
    const run = FENCE.exec(line.replace(CONTAINERS, ""))?.[1] ?? "";
    if (open === "") open = run;
    else if (run.startsWith(open) && line.trimEnd().endsWith(run)) open = "";
    if (open === "" && line.trim() === "" && next <= text.length) end = next;
    at = next;
  }
  return end;
}
