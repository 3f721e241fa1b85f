// Parts of a change that are drawn on demand. A change is approved only after all of them were drawn.

import { counted } from "./text";

/** The label of a button that approves, as long as a part was not drawn. */
export const SHOW_ALL = "Show everything";

/** The event when parts were drawn; it bubbles. */
export const DRAWN = "vault-agent-drawn";

const UNDRAWN = "vault-agent-undrawn";
const draws = new WeakMap<Element, () => void>();

/** Marks an element whose content is drawn once, on demand. Returns what a listener calls. */
function onDemand(element: HTMLElement, draw: () => void): () => void {
  element.addClass(UNDRAWN);
  draws.set(element, draw);
  return () => {
    if (!draws.has(element)) return;
    const parent = element.parentElement;
    drawNow(element);
    parent?.dispatchEvent(new Event(DRAWN, { bubbles: true }));
  };
}

/** The mark goes last, so that what could not be drawn cannot be approved. */
function drawNow(element: HTMLElement): void {
  const draw = draws.get(element);
  draws.delete(element);
  draw?.();
  element.removeClass(UNDRAWN);
}

/** Draws the content of a `details` when it is opened for the first time. */
export function drawOnOpen(details: HTMLDetailsElement, isOpen: boolean, draw: () => void): void {
  const once = onDemand(details, () => {
    draw();
    details.open = true;
  });
  if (isOpen) drawNow(details);
  else details.addEventListener("toggle", once);
}

/** A button in place of the rest of something. */
export function drawOnPress(parent: HTMLElement, text: string, draw: () => void): void {
  const button = parent.createEl("button", { text, attr: { type: "button" } });
  const once = onDemand(button, () => {
    draw();
    button.remove();
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
export function hasUndrawn(root: HTMLElement): boolean {
  return root.querySelector(`.${UNDRAWN}`) !== null;
}

/** Draws all parts, and moves the focus to `top`, so that a second press of the same key approves nothing. */
export function drawAll(root: HTMLElement, top: HTMLElement | null): void {
  const parts = () => Array.from(root.querySelectorAll<HTMLElement>(`.${UNDRAWN}`)).filter((part) => draws.has(part));
  // What is drawn can have parts that are drawn on demand.
  for (let undrawn = parts(); undrawn.length > 0; undrawn = parts()) {
    for (const part of undrawn) {
      const closed = part.parentElement?.closest<HTMLDetailsElement>("details:not([open])");
      if (closed) closed.open = true;
      drawNow(part);
    }
  }
  root.dispatchEvent(new Event(DRAWN, { bubbles: true }));
  top?.focus();
}
