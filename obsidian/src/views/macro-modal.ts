// A macro before it runs: its parameters, then everything that it does, for approval.

import { selectionIn } from "../conversation/context";
import type { NamedMacro } from "../protocol";
import { ApprovalModal, tellDone, type Services } from "./approval-modal";
import { nameHidden, visible } from "./text";

/** How long the typing rests before the change is prepared. */
const REST_MS = 300;

export class MacroModal extends ApprovalModal {
  private timer: number | null = null;
  private readonly values = new Map<string, string>();

  constructor(
    services: Services,
    private readonly saved: NamedMacro,
  ) {
    super(services, visible(`Run ${saved.name}`), "Run", (result) => tellDone(services, `${saved.name} ran.`, result));
    const selection = selectionIn(services.app)?.text ?? "";
    const active = services.app.workspace.getActiveFile()?.path ?? "";
    const known = { selection, file: active, folder: "", text: "" };
    if (saved.description !== "") this.contentEl.prepend(createDiv({ cls: "vault-agent-muted", text: visible(saved.description) }));
    for (const { name, kind, default: value } of saved.parameters) {
      const label = createEl("label", { cls: "vault-agent-field" });
      label.createSpan({ text: visible(name) });
      const input = label.createEl(kind === "selection" ? "textarea" : "input", kind === "selection" ? {} : { type: "text" });
      input.value = value ?? known[kind];
      nameHidden(input, value ?? known[kind]);
      this.values.set(name, input.value);
      input.addEventListener("input", () => {
        this.values.set(name, input.value);
        this.typed();
      });
      this.bodyEl.before(label);
    }
  }

  override onOpen(): void {
    this.prepare();
  }

  override onClose(): void {
    if (this.timer !== null) window.clearTimeout(this.timer);
    super.onClose();
  }

  private typed(): void {
    this.forget("…");
    if (this.timer !== null) window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.prepare(), REST_MS);
  }

  private prepare(): void {
    const missing = [...this.values].filter(([, value]) => value.trim() === "").map(([name]) => name);
    if (missing.length > 0) return this.forget(visible(`Fill in ${missing.join(", ")}.`));
    void this.show({ kind: "macro", name: this.saved.name, parameters: Object.fromEntries(this.values) });
  }
}
