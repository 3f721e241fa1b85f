// Context that a message can share: the open note, a selection, notes that are named, pictures. The person sees each as it
// would be sent, and ticks it.

import type { App, EditorPosition } from "obsidian";
import type { PromptBlock } from "../agent/acp";
import { lastEditor } from "../notes";
import { baseName, counted } from "../views/text";

/** Characters of a note that are shared at most. */
const MOST = 50_000;

/** Something that can be shared. */
export interface Shared {
  /** Equal for the same thing. */
  key: string;
  label: string;
  block: PromptBlock;
  /** The text as it is sent; a description of a picture. */
  preview: string;
  isTicked: boolean;
}

/** The address of a file of the vault. */
export function fileUri(folder: string, path: string): string {
  const parts = `${folder.replaceAll("\\", "/").replace(/\/$/, "")}/${path}`.split("/").map((part) => (/^[A-Za-z]:$/.test(part) ? part : encodeURIComponent(part)));
  const joined = parts.join("/");
  return `file://${joined.startsWith("/") ? "" : "/"}${joined}`;
}

/** The path in the vault of a file on the disk; null outside of it. */
export function pathInVault(folder: string, file: string): string | null {
  const [base, path] = [folder, file].map((name) => name.replaceAll("\\", "/").replace(/\/$/, "")) as [string, string];
  return path.startsWith(`${base}/`) ? path.slice(base.length + 1) : null;
}

function shared(folder: string, path: string, text: string, lines: { from: number; to: number } | null, label: string): Shared {
  const uri = fileUri(folder, path) + (lines === null ? "" : `#L${lines.from}:${lines.to}`);
  return {
    key: uri,
    label,
    block: { type: "resource", resource: { uri, text, mimeType: "text/markdown" } },
    preview: text,
    isTicked: true,
  };
}

/** A note with its text, also with what is typed and not saved yet. */
export async function noteToShare(app: App, folder: string, path: string): Promise<Shared | null> {
  const file = app.vault.getFileByPath(path);
  if (file === null) return null;
  const view = lastEditor(app);
  const whole = view?.file?.path === path ? view.editor.getValue() : await app.vault.read(file);
  const text = whole.slice(0, MOST);
  const size = text.length < whole.length ? `the first ${MOST.toLocaleString("en")} of ${counted(whole.length, "character")}` : counted(text.length, "character");
  return shared(folder, path, text, null, `${baseName(path)} (${size})`);
}

/** A selection in the editor that was used last. */
export interface Selection {
  path: string;
  text: string;
  from: number;
  to: number;
}

export function selectionIn(app: App): Selection | null {
  const view = lastEditor(app);
  if (view === null || view.file === null || view.getMode() !== "source") return null;
  const text = view.editor.getSelection();
  if (text.trim() === "") return null;
  return { path: view.file.path, text, ...linesOf(view.editor.getCursor("from"), view.editor.getCursor("to")) };
}

/** The lines of a selection, from 1. One of whole lines ends at the beginning of the next line. */
export function linesOf(from: EditorPosition, to: EditorPosition): { from: number; to: number } {
  const last = to.ch === 0 && to.line > from.line ? to.line - 1 : to.line;
  return { from: from.line + 1, to: last + 1 };
}

/** A selection in words. */
export function nameOf({ path, text, from, to }: Selection): string {
  const lines = from === to ? `line ${from}` : `lines ${from} to ${to}`;
  return `${lines} of ${baseName(path)} (${counted(text.length, "character")})`;
}

export function selectionToShare(folder: string, selection: Selection): Shared {
  const { path, text, from, to } = selection;
  return shared(folder, path, text, { from, to }, `Selection: ${nameOf(selection)}`);
}

/** A picture, for models that take some. */
export async function pictureToShare(file: File): Promise<Shared> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  const label = `Picture ${file.name === "" ? "from the clipboard" : file.name} (${Math.ceil(file.size / 1000).toLocaleString("en")} kB)`;
  return { key: `picture ${file.name} ${file.size} ${file.lastModified}`, label, block: { type: "image", data: btoa(binary), mimeType: file.type }, preview: label, isTicked: true };
}
