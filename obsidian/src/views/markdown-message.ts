// Markdown as it streams, by the app's own renderer: a complete block is drawn once, and only the last block is drawn again
// while it grows. At the end the whole is drawn once more, so that lists and references across blocks are right.

import { Component, getLinkpath, MarkdownRenderer, Notice, type App } from "obsidian";
import { completeUpTo, guard, placeIn, type Guarded, type Source } from "../conversation/markdown";
import { openNote } from "../notes";
import { baseName, visible } from "./text";

/** The shortest time between two drawings of a text that grows. */
const REST_MS = 80;

/** Elements that no answer needs. The guard lets none of them through; this is the second lock. */
const REMOVED = "script, style, iframe, object, embed, img, picture, video, audio, source, link, form, button, textarea, select, svg, meta, base";

/** The schemes of links that leave the app. */
const WEB = new Set(["http:", "https:", "mailto:"]);

/** The app, and the component with which the drawn text ends. */
export interface Place {
  app: App;
  component: Component;
}

/** A link to a place in a note, or its text if there is no such note. */
function sourceLink(app: App, { path, line }: Source, label = `${baseName(path)}:${line}`): Node {
  const text = visible(label);
  if (app.vault.getFileByPath(path) === null) return activeDocument.createTextNode(text);
  const link = createEl("a", { cls: "vault-agent-source", text, attr: { href: "#", title: `Open ${visible(path)} at line ${line}` } });
  link.addEventListener("click", (event) => {
    event.preventDefault();
    event.stopPropagation();
    void openNote(app, path, line, event.ctrlKey || event.metaKey);
  });
  return link;
}

/** Puts code and sources back in place of their placeholders. */
function restore(parent: HTMLElement, { pieces, placeholder }: Guarded, app: App): void {
  const walker = activeDocument.createTreeWalker(parent, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  while (walker.nextNode() !== null) texts.push(walker.currentNode as Text);
  for (const text of texts) {
    const parts = text.data.split(placeholder);
    if (parts.length === 1) continue;
    const nodes = parts.flatMap<Node>((part, index) => {
      if (index % 2 === 0) return part === "" ? [] : [activeDocument.createTextNode(part)];
      const piece = pieces[Number(part)];
      if (piece === undefined) return [];
      if (piece.kind === "code") {
        const source = text.parentElement?.closest("pre") === null ? placeIn(piece.text) : null;
        return [source === null ? activeDocument.createTextNode(piece.text) : sourceLink(app, source, piece.text)];
      }
      const links = piece.sources.flatMap((source, at) => [...(at > 0 ? [activeDocument.createTextNode(", ")] : []), sourceLink(app, source)]);
      return [activeDocument.createTextNode("["), ...links, activeDocument.createTextNode("]")];
    });
    text.replaceWith(...nodes);
  }
}

/** Removes what could act, and shows where links lead. */
function secure(parent: HTMLElement, app: App): void {
  for (const element of Array.from(parent.querySelectorAll(REMOVED))) element.remove();
  // Long code scrolls, also by the keyboard.
  for (const code of Array.from(parent.querySelectorAll("pre"))) code.setAttribute("tabindex", "0");
  for (const link of Array.from(parent.querySelectorAll<HTMLAnchorElement>("a:not(.vault-agent-source)"))) {
    const href = link.getAttribute("data-href") ?? link.getAttribute("href") ?? "";
    const url = webAddress(href);
    if (link.hasClass("tag")) {
      link.setAttribute("href", "#");
      link.addEventListener("click", (event) => event.preventDefault());
    } else if (link.hasClass("internal-link") && targetOf(app, href) !== null) secureNoteLink(link, href, app);
    else if (url !== null && !link.hasClass("internal-link")) secureWebLink(link, url);
    else link.replaceWith(activeDocument.createTextNode(link.textContent ?? ""));
  }
}

/** The note that a link leads to, with its heading or block; null if there is no such note. */
function targetOf(app: App, href: string): string | null {
  for (const link of [href, decoded(href)]) {
    const note = app.metadataCache.getFirstLinkpathDest(getLinkpath(link), "");
    if (note !== null) return note.path + (/#.*$/s.exec(link)?.[0] ?? "");
  }
  return null;
}

function decoded(href: string): string {
  try {
    return decodeURIComponent(href);
  } catch {
    return href;
  }
}

/** Opens a note that is there. The app itself would create one that is missing. */
function secureNoteLink(link: HTMLElement, href: string, app: App): void {
  link.setAttribute("href", "#");
  link.addEventListener("click", (event) => {
    event.preventDefault();
    event.stopPropagation();
    const target = targetOf(app, href);
    if (target === null) new Notice(`${visible(href)} is not in this vault any more.`);
    else void app.workspace.openLinkText(target, "", event.ctrlKey || event.metaKey);
  });
}

/** The address of a link that leaves the app, without a name or a password, which look like a host. */
function webAddress(href: string): URL | null {
  try {
    const url = new URL(href);
    if (!WEB.has(url.protocol)) return null;
    url.username = "";
    url.password = "";
    return url;
  } catch {
    return null;
  }
}

/** Leads to the address as it is read here, and names its host unless the text is nothing but that. */
function secureWebLink(link: HTMLElement, url: URL): void {
  const receiver = url.protocol === "mailto:" ? url.pathname : url.host;
  const text = (link.textContent ?? "").trim();
  link.removeAttribute("data-href");
  link.setAttribute("href", url.href);
  link.setAttribute("rel", "noopener nofollow");
  link.setAttribute("title", visible(url.href));
  if (![receiver, url.href, url.href.replace(/\/$/, "")].includes(text)) link.after(createSpan({ cls: "vault-agent-muted", text: ` (${visible(receiver === "" ? url.href : receiver)})` }));
}

/** Draws Markdown that anybody may have written. */
export async function drawMarkdown(text: string, { app, component }: Place): Promise<HTMLElement> {
  const guarded = guard(text);
  const drawn = createDiv({ cls: "markdown-rendered" });
  await MarkdownRenderer.render(app, guarded.markdown, drawn, "", component);
  secure(drawn, app);
  restore(drawn, guarded, app);
  return drawn;
}

export class MarkdownMessage {
  private text = "";
  private isDone = false;
  /** Characters that are drawn for good. */
  private drawn = 0;
  private readonly tailEl: HTMLElement;
  private timer: number | null = null;
  /** The components of what is drawn, and the one of the last block. */
  private readonly parts: Component[] = [];
  private tail: Component | null = null;
  private drawing: Promise<void> = Promise.resolve();

  constructor(
    private readonly parent: HTMLElement,
    private readonly place: Place,
  ) {
    this.tailEl = parent.createDiv({ cls: "markdown-rendered" });
  }

  /** Shows a text that begins with the one before. */
  show(text: string, isDone: boolean): void {
    if (text === this.text && isDone === this.isDone) return;
    this.text = text;
    this.isDone = isDone;
    if (this.timer !== null && !isDone) return;
    if (this.timer !== null) window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      this.timer = null;
      // A renderer that fails, for example because of another plugin, leaves the text readable.
      this.drawing = this.drawing.then(() => this.draw()).catch(() => this.parent.setText(visible(this.text)));
    }, isDone ? 0 : REST_MS);
  }

  private async draw(): Promise<void> {
    const { text, isDone } = this;
    if (isDone) {
      const whole = await this.drawPart(text);
      this.parent.replaceChildren(whole);
      // Removed children end the listeners that other plugins registered for the earlier drawings.
      for (const part of this.parts.splice(0, this.parts.length - 1)) this.place.component.removeChild(part);
      return;
    }
    const complete = completeUpTo(text);
    if (complete > this.drawn) {
      const block = await this.drawPart(text.slice(this.drawn, complete));
      this.tailEl.before(block);
      this.drawn = complete;
      this.tail = null;
    }
    const before = this.tail;
    const tail = await this.drawPart(text.slice(this.drawn));
    this.tail = this.parts[this.parts.length - 1] ?? null;
    this.tailEl.replaceChildren(...Array.from(tail.childNodes));
    if (before !== null) {
      this.parts.splice(this.parts.indexOf(before), 1);
      this.place.component.removeChild(before);
    }
  }

  private drawPart(text: string): Promise<HTMLElement> {
    const component = this.place.component.addChild(new Component());
    this.parts.push(component);
    return drawMarkdown(text, { app: this.place.app, component });
  }
}
