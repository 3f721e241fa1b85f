// A form of the program, for example the values that a plan needs.

import type { FormField } from "../agent/acp";
import type { Conversation, Form } from "../conversation/conversation";
import { nameHidden, visible } from "./text";

/** The choices of a field that has some. */
function choicesOf({ enum: values, oneOf, items }: FormField): Array<[string, string]> | null {
  const titled = oneOf ?? items?.anyOf;
  if (titled !== undefined) return titled.map(({ const: value, title }) => [value, title ?? value]);
  return (values ?? items?.enum)?.map((value) => [value, value]) ?? null;
}

/** Draws a field, and returns what reads it. */
function drawField(parent: HTMLElement, name: string, field: FormField): () => unknown {
  const label = visible([field.title ?? name, field.description ?? ""].filter((text) => text !== "").join(": "));
  const choices = choicesOf(field);
  if (field.type === "array" && choices !== null) {
    const group = parent.createEl("fieldset");
    group.createEl("legend", { text: label });
    const ticked = Array.isArray(field.default) ? field.default : [];
    const boxes = choices.map(([value, title]) => {
      const row = group.createEl("label", { cls: "vault-agent-item" });
      const box = row.createEl("input", { type: "checkbox" });
      box.checked = ticked.includes(value);
      row.appendText(` ${visible(title)}`);
      return { box, value };
    });
    return () => boxes.filter(({ box }) => box.checked).map(({ value }) => value);
  }
  const row = parent.createEl("label", { cls: "vault-agent-field" });
  row.createSpan({ text: label });
  if (choices !== null) {
    const select = row.createEl("select");
    for (const [value, title] of choices) select.createEl("option", { text: visible(title), value });
    if (typeof field.default === "string") select.value = field.default;
    return () => select.value;
  }
  if (field.type === "boolean") {
    const box = row.createEl("input", { type: "checkbox" });
    box.checked = field.default === true;
    return () => box.checked;
  }
  const isNumber = field.type === "number" || field.type === "integer";
  const input = row.createEl("input", { type: isNumber ? "number" : "text" });
  const text = typeof field.default === "string" || typeof field.default === "number" ? String(field.default) : "";
  input.value = text;
  nameHidden(input, text);
  return () => (isNumber && input.value !== "" ? Number(input.value) : input.value);
}

/** Shows a form, or how it ended. */
export function showForm(parent: HTMLElement, conversation: Conversation, form: Form): void {
  parent.empty();
  parent.addClass("vault-agent-card");
  const title = visible(form.request.message);
  parent.setAttr("role", "group");
  parent.setAttr("aria-label", title);
  if (form.outcome !== "") {
    parent.addClass("is-decided");
    parent.createSpan({ text: `${form.outcome} ` });
    parent.createSpan({ cls: "vault-agent-muted", text: title });
    return;
  }
  parent.createDiv({ cls: "vault-agent-card-title", text: title });
  const fields = Object.entries(form.request.requestedSchema?.properties ?? {}).map(([name, field]) => [name, drawField(parent, name, field)] as const);
  const buttons = parent.createDiv({ cls: "vault-agent-buttons" });
  const button = (text: string, act: () => void, cls = "") => {
    buttons.createEl("button", { text, cls, attr: { type: "button" } }).addEventListener("click", act);
  };
  button("Send", () => conversation.fill(form, { action: "accept", content: Object.fromEntries(fields.map(([name, read]) => [name, read()])) }), "mod-cta");
  button("Cancel", () => conversation.fill(form, { action: "cancel" }));
}
