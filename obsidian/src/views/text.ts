// Text of notes as it is shown: always as text, never as markup, with no character that hides or reorders others.

import type { Segment } from "../protocol";

/**
 * Controls and format characters, and others that have no shape: they turn or hide text. The signs of Arabic and Syriac
 * that count as format characters are seen, so they stay. So do joiners and variation selectors, which emoji and some
 * scripts need, but not after a space or one after the other, where they could hide a message.
 */
const HIDDEN = new RegExp(
  [
    /(?![\u200d\t\n\u200c\u0600-\u0605\u06dd\u070f\u08e2])[\p{Cc}\p{Cf}\u2028\u2029]/u,
    /\u034f|\u17b4|\u17b5|[\u180b-\u180f]|[\u115f\u1160\u2065\u3164\uffa0\ufff0-\ufff8]|[\u{e0000}-\u{e0fff}]/u,
    /(?<=\s|\u200c|\u200d)(?:\u200c|\u200d|[\ufe00-\ufe0f])|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]/u,
  ]
    .map(({ source }) => source)
    .join("|"),
  "gu",
);

/** The text with a visible sign for each character that could deceive its reader, for example `⟨U+202E⟩`. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code === 0x0d ? "␍" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** The characters of a text that are hidden or reorder others, each once. */
function hiddenIn(text: string): string[] {
  return [...new Set(text.match(HIDDEN) ?? [])].map(visible);
}

/**
 * Names the hidden characters of a field after it, as long as it has some: a field itself cannot show them. `text` is what
 * was put into it; a field drops some of them.
 */
export function nameHidden(input: HTMLInputElement | HTMLTextAreaElement, text: string): void {
  const shown = input.value;
  const named = createSpan({ cls: "vault-agent-hidden", attr: { role: "status" } });
  input.after(named);
  const follow = () => {
    const hidden = hiddenIn(input.value === shown ? text : input.value);
    named.toggle(hidden.length > 0);
    named.setText(hidden.length === 0 ? "" : `Hidden characters: ${hidden.join(" ")}`);
  };
  input.addEventListener("input", follow);
  follow();
}

/** Shows a text with its matches marked. */
export function showSegments(parent: HTMLElement, segments: Segment[]): void {
  for (const { text, isMatch } of segments) {
    if (isMatch) parent.createEl("mark", { text: visible(text), cls: "vault-agent-mark" });
    else parent.appendText(visible(text));
  }
}

/** `1 note`, `2 notes`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** A path without the extension of a note. */
export function noteName(path: string): string {
  return path.replace(/\.md$/i, "");
}

/** The name of a file, without its folders and the extension of a note. */
export function baseName(path: string): string {
  return noteName(path.slice(path.lastIndexOf("/") + 1));
}

/** A time of the past as people say it, for example `5 minutes ago`. */
export function ago(time: string, now: Date): string {
  const seconds = Math.max(0, Math.round((now.getTime() - new Date(time).getTime()) / 1_000));
  const steps: Array<[number, string]> = [
    [60, "second"],
    [60, "minute"],
    [24, "hour"],
    [30, "day"],
  ];
  let amount = seconds;
  for (const [size, name] of steps) {
    if (amount < size) return name === "second" ? "just now" : `${counted(amount, name)} ago`;
    amount = Math.floor(amount / size);
  }
  return new Date(time).toLocaleDateString();
}
