// Completion of a query: which word the cursor is in, and what can stand there.

import type { VocabularyResult } from "./protocol";

/** A completion of the word before the cursor. */
export interface Completion {
  /** The text of the list. */
  label: string;
  /** Its meaning, for example how many notes have a tag. */
  detail: string;
  /** The text that replaces the word. */
  insert: string;
}

/** The names of the vault, as the app has them. */
export interface Names {
  folders(): string[];
  notes(): string[];
}

/** The most completions that are offered. */
const MOST = 8;

/** The word that ends at the cursor, with the place where it begins. A word in quotes can hold spaces. */
export function wordBefore(query: string, cursor: number): { from: number; word: string } {
  let from = 0;
  let isQuoted = false;
  for (let at = 0; at < cursor; at++) {
    const character = query[at];
    if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (character === " " || (character === "(" && query[at - 1] !== ":"))) from = at + 1;
  }
  // A minus only negates what follows.
  if (query[from] === "-" && from + 1 < cursor) from += 1;
  return { from, word: query.slice(from, cursor) };
}

function folded(text: string): string {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}

/** Those that begin so before those that have it inside. */
function matching(all: Iterable<string>, part: string): string[] {
  const wanted = folded(part);
  const begins: string[] = [];
  const holds: string[] = [];
  for (const name of all) {
    const place = folded(name).indexOf(wanted);
    if (place === 0) begins.push(name);
    else if (place > 0 && holds.length < MOST) holds.push(name);
    if (begins.length >= MOST) break;
  }
  return [...begins, ...holds].slice(0, MOST);
}

function quoted(name: string): string {
  return /[\s()[\]"]/.test(name) ? `"${name.replaceAll('"', "")}"` : name;
}

/** The completions for the word before the cursor. */
export function complete(query: string, cursor: number, vocabulary: VocabularyResult, names: Names): Completion[] {
  const { word } = wordBefore(query, cursor);
  if (word === "") return [];
  const operator = vocabulary.operators
    .filter(({ completes, insert }) => completes !== "nothing" && word.startsWith(insert))
    .sort((a, b) => b.insert.length - a.insert.length)[0];
  if (operator !== undefined) {
    const part = word.slice(operator.insert.length).replace(/^"/, "");
    const known = {
      tags: () => vocabulary.tags.map(({ name }) => name),
      folders: names.folders.bind(names),
      notes: names.notes.bind(names),
      properties: () => vocabulary.properties,
    }[operator.completes as "tags" | "folders" | "notes" | "properties"];
    const counts = new Map(vocabulary.tags.map(({ name, notes }) => [name, notes]));
    return matching(known(), part).map((name) => {
      const count = operator.completes === "tags" ? counts.get(name) : undefined;
      const isProperty = operator.completes === "properties";
      return {
        label: name,
        detail: count === undefined ? "" : String(count),
        insert: isProperty ? `${operator.insert}${name}` : `${operator.insert}${quoted(name)}`,
      };
    });
  }
  // A bare word completes to operators only when it is long enough to mean one.
  if (word.length < 2 && !/[[/"]/.test(word)) return [];
  return vocabulary.operators
    .filter(({ insert }) => insert.length > 1 && insert.toLowerCase().startsWith(word.toLowerCase()) && insert !== word)
    .slice(0, MOST)
    .map(({ insert, description }) => ({ label: insert, detail: description, insert }));
}

/** The query with a completion in place of the word before the cursor, and the new place of the cursor. */
export function accept(query: string, cursor: number, completion: Completion): { query: string; cursor: number } {
  const { from } = wordBefore(query, cursor);
  const isOpen = /[:[(]$/.test(completion.insert) || completion.insert.startsWith("[");
  const rest = query.slice(cursor);
  const space = isOpen || rest.startsWith(" ") ? "" : " ";
  const before = `${query.slice(0, from)}${completion.insert}${space}`;
  return { query: before + rest, cursor: before.length };
}
