// The entries of a conversation as elements: messages, thoughts and calls folded, notices, plans, questions.

import type { Location } from "../agent/acp";
import { pathInVault } from "../conversation/context";
import type { Call, Conversation, Entry } from "../conversation/conversation";
import { openNote } from "../notes";
import type { ViewServices } from "./agent-view";
import { ApprovalCard } from "./approval-card";
import { showForm } from "./form-card";
import { MarkdownMessage, type Place } from "./markdown-message";
import { baseName, visible } from "./text";

/** Places of a call that are listed. */
const MOST_PLACES = 50;

const STATUS = { pending: "waiting", in_progress: "running", completed: "done", failed: "failed" } as const;
const STEPS = { pending: "○", in_progress: "◐", completed: "●" } as const;

/** The part of a view that its entries use. */
export interface EntryOwner {
  services: ViewServices;
  place: Place;
  conversation: Conversation;
  /** Goes on with a turn that was interrupted. */
  goOn(): void;
}

/** Makes the element of an entry, and what draws the entry as it is now. */
export function showEntry(parent: HTMLElement, entry: Entry, owner: EntryOwner): () => void {
  const element = parent.createDiv({ cls: `vault-agent-entry is-${entry.kind}` });
  switch (entry.kind) {
    case "person":
      element.createDiv({ cls: "vault-agent-who", text: "You" });
      element.createDiv({ cls: "vault-agent-said", text: visible(entry.text) });
      for (const label of entry.shared) element.createDiv({ cls: "vault-agent-muted", text: visible(`Sent with it: ${label}`) });
      return () => {
        if (entry.isTakenBack) element.remove();
      };
    case "assistant": {
      element.createDiv({ cls: "vault-agent-who", text: "Assistant" });
      const message = new MarkdownMessage(element.createDiv({ cls: "vault-agent-said" }), owner.place);
      return () => message.show(entry.text, entry.isDone);
    }
    case "thought": {
      const details = element.createEl("details");
      details.createEl("summary", { text: "Thoughts" });
      const text = details.createDiv({ cls: "vault-agent-thought" });
      return () => text.setText(visible(entry.text));
    }
    case "call":
      return callRow(element, entry.call, owner);
    case "notice":
      element.addClass(`is-${entry.severity}`);
      element.createSpan({ text: visible(entry.text) });
      if (entry.action === "continue") element.createEl("button", { text: "Continue", attr: { type: "button" } }).addEventListener("click", () => owner.goOn());
      return () => undefined;
    case "plan": {
      const list = element.createEl("ol", { cls: "vault-agent-steps", attr: { "aria-label": "Steps of the plan" } });
      return () => {
        list.empty();
        for (const { content, status } of entry.entries) {
          const step = list.createEl("li", { cls: `is-${status}` });
          step.createSpan({ text: STEPS[status], attr: { "aria-hidden": "true" } });
          step.createSpan({ text: ` ${visible(content.replaceAll("`", ""))}` });
          step.createSpan({ cls: "vault-agent-spoken", text: ` ${STATUS[status]}` });
        }
      };
    }
    case "question": {
      const card = new ApprovalCard(element, owner.conversation, entry.question, owner.services);
      return () => card.show();
    }
    case "form":
      return () => showForm(element, owner.conversation, entry.form);
  }
}

/** A call in one line, with what came of it folded. */
function callRow(element: HTMLElement, call: Call, owner: EntryOwner): () => void {
  const details = element.createEl("details");
  const summary = details.createEl("summary");
  const body = details.createDiv({ cls: "vault-agent-call-body" });
  const drawBody = () => {
    body.empty();
    placesOf(body, call.locations ?? [], owner);
    for (const text of call.texts) body.createEl("pre", { text: visible(text), attr: { tabindex: "0", "aria-label": "What the call shows" } });
    if (body.childElementCount === 0) body.createDiv({ cls: "vault-agent-muted", text: "Nothing to show." });
  };
  details.addEventListener("toggle", () => {
    if (details.open) drawBody();
  });
  return () => {
    const status = STATUS[call.status ?? "pending"];
    element.dataset.status = status;
    summary.empty();
    summary.createSpan({ text: visible((call.title ?? call.name ?? "A call").replaceAll("`", "")) });
    summary.createSpan({ cls: "vault-agent-muted", text: ` ${status}` });
    if (details.open) drawBody();
  };
}

function placesOf(parent: HTMLElement, locations: Location[], { services }: EntryOwner): void {
  const list = parent.createDiv({ cls: "vault-agent-places" });
  for (const { path, line } of locations.slice(0, MOST_PLACES)) {
    const inVault = pathInVault(services.agent.vault, path);
    if (inVault === null) continue;
    const text = visible(`${baseName(inVault)}${line ? `:${line}` : ""}`);
    const link = list.createEl("button", { cls: "vault-agent-link", text, attr: { type: "button", title: visible(inVault) } });
    link.addEventListener("click", (event) => void openNote(services.app, inVault, line ?? null, event.ctrlKey || event.metaKey));
  }
  if (list.childElementCount === 0) list.remove();
}
