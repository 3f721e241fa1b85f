// Parts of a change that are drawn on demand. A change is approved only after all of them were drawn.

import { counted } from "./text";

/** The label of a button that approves, as long as a part was not drawn. */
export const SHOW_ALL = "Show everything";

/** The event when an unseen part was drawn; it bubbles. */
export const SEEN = "vault-agent-seen";

const UNSEEN = "vault-agent-unseen";
const draws = new WeakMap<Element, () => void>();

function onceSeen(element: HTMLElement, draw: () => void): () => void {
  element.addClass(UNSEEN);
  const once = () => {
    if (!element.hasClass(UNSEEN)) return;
    element.removeClass(UNSEEN);
    const parent = element.parentElement;
    draw();
    parent?.dispatchEvent(new Event(SEEN, { bubbles: true }));
  };
  draws.set(element, once);
  return once;
}

/** Draws the content of a `details` when it is opened for the first time. */
export function drawOnOpen(details: HTMLDetailsElement, isOpen: boolean, draw: () => void): void {
  const once = onceSeen(details, () => {
    details.open = true;
    draw();
  });
  if (isOpen) once();
  else details.addEventListener("toggle", once);
}

/** A button in place of the rest of something. */
export function drawOnPress(parent: HTMLElement, text: string, draw: () => void): void {
  const button = parent.createEl("button", { text, attr: { type: "button" } });
  const once = onceSeen(button, () => {
    button.remove();
    draw();
  });
  button.addEventListener("click", once);
}

/** Draws so many rows of a list, and a button in place of the others. */
export function drawRows(list: HTMLElement, count: number, size: number, what: string, draw: (at: number) => void): void {
  const show = (from: number) => {
    const until = Math.min(count, from + size);
    for (let at = from; at < until; at++) draw(at);
    if (until < count) drawOnPress(list, `Show ${counted(count - until, what)}`, () => show(until));
  };
  show(0);
}

/** Whether a part was not drawn yet. */
export function hasUnseen(root: HTMLElement): boolean {
  return root.querySelector(`.${UNSEEN}`) !== null;
}

/** Draws all parts, and scrolls to the first that was not drawn before. */
export function drawAll(root: HTMLElement): void {
  const first = root.querySelector<HTMLElement>(`.${UNSEEN}`);
  const before = first?.previousElementSibling ?? first?.parentElement;
  // What is drawn can have parts that are drawn on demand.
  while (hasUnseen(root)) {
    for (const part of Array.from(root.querySelectorAll<HTMLElement>(`.${UNSEEN}`))) {
      const closed = part.parentElement?.closest<HTMLDetailsElement>("details:not([open])");
      if (closed) closed.open = true;
      draws.get(part)?.();
    }
  }
  before?.scrollIntoView({ block: "nearest" });
}
