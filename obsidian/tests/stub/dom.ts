// The app's additions to the DOM, as far as the plugin uses them.

type Attributes = Record<string, string | number | boolean | null>;

interface ElementInfo {
  cls?: string | string[];
  text?: string | DocumentFragment;
  attr?: Attributes;
  type?: string;
  value?: string;
  placeholder?: string;
  href?: string;
  title?: string;
}

function create(doc: Document, tag: string, info: ElementInfo | string | undefined): HTMLElement {
  const element = doc.createElement(tag);
  const { cls, text, attr, type, value, placeholder, title }: ElementInfo = typeof info === "string" ? { cls: info } : (info ?? {});
  if (cls !== undefined) element.className = Array.isArray(cls) ? cls.join(" ") : cls;
  if (text instanceof DocumentFragment) element.append(text);
  else if (text !== undefined) element.textContent = text;
  for (const [name, given] of Object.entries(attr ?? {})) {
    if (given !== null) element.setAttribute(name, String(given));
  }
  if (type !== undefined) element.setAttribute("type", type);
  if (title !== undefined) element.setAttribute("title", title);
  if (placeholder !== undefined) element.setAttribute("placeholder", placeholder);
  if (value !== undefined) (element as HTMLInputElement).value = value;
  return element;
}

function added<Found extends Node>(parent: Node, child: Found, callback: unknown): Found {
  parent.appendChild(child);
  if (typeof callback === "function") (callback as (child: Found) => void)(child);
  return child;
}

/** Adds the helpers of the app to the elements of a window. */
export function installDom(window: Window & typeof globalThis): void {
  const { document: doc } = window;
  Object.assign(window, { activeDocument: doc });
  const nodeHelpers = {
    createEl(this: Node, tag: string, info?: ElementInfo | string, callback?: unknown) {
      return added(this, create(doc, tag, info), callback);
    },
    createDiv(this: Node, info?: ElementInfo | string, callback?: unknown) {
      return added(this, create(doc, "div", info), callback);
    },
    createSpan(this: Node, info?: ElementInfo | string, callback?: unknown) {
      return added(this, create(doc, "span", info), callback);
    },
    appendText(this: Node, text: string) {
      this.appendChild(doc.createTextNode(text));
    },
    instanceOf(this: Node, type: new () => Node) {
      return this instanceof type;
    },
    empty(this: Node) {
      while (this.lastChild !== null) this.removeChild(this.lastChild);
    },
  };
  Object.assign(window.Node.prototype, nodeHelpers);
  Object.defineProperty(window.Node.prototype, "doc", { get: () => doc, configurable: true });
  const elementHelpers = {
    setText(this: HTMLElement, text: string) {
      this.textContent = text;
    },
    addClass(this: HTMLElement, ...names: string[]) {
      this.classList.add(...names);
    },
    removeClass(this: HTMLElement, ...names: string[]) {
      this.classList.remove(...names);
    },
    hasClass(this: HTMLElement, name: string) {
      return this.classList.contains(name);
    },
    toggleClass(this: HTMLElement, name: string, isOn: boolean) {
      this.classList.toggle(name, isOn);
    },
    setAttr(this: HTMLElement, name: string, value: string | number | boolean | null) {
      if (value === null) this.removeAttribute(name);
      else this.setAttribute(name, String(value));
    },
    getAttr(this: HTMLElement, name: string) {
      return this.getAttribute(name);
    },
    show(this: HTMLElement) {
      this.style.display = "";
    },
    hide(this: HTMLElement) {
      this.style.display = "none";
    },
    toggle(this: HTMLElement, isShown: boolean) {
      this.style.display = isShown ? "" : "none";
    },
    isShown(this: HTMLElement) {
      return this.offsetParent !== null;
    },
  };
  Object.assign(window.HTMLElement.prototype, elementHelpers);
  const fragment = (callback?: (parent: DocumentFragment) => void) => {
    const made = doc.createDocumentFragment();
    callback?.(made);
    return made;
  };
  Object.assign(window, {
    createEl: (tag: string, info?: ElementInfo | string) => create(doc, tag, info),
    createDiv: (info?: ElementInfo | string) => create(doc, "div", info),
    createSpan: (info?: ElementInfo | string) => create(doc, "span", info),
    createFragment: fragment,
    activeDocument: doc,
    activeWindow: window,
  });
}
