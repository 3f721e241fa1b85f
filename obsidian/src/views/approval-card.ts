// A question of the program about a call: what it would do, what leaves the machine, and what the person decides.

import { showFittingPlugins } from "../community-plugins";
import { APPROVED, type Conversation, type Decision, type Question } from "../conversation/conversation";
import { saveEditors } from "../notes";
import type { Approval, ApprovalPart, ApprovalPlan } from "../protocol";
import type { ViewServices } from "./agent-view";
import { messageOf, pathsBefore } from "./approval-modal";
import { showDiff } from "./diff";
import { NO_TEXT, OPEN, SHOWN, showFileChanges } from "./file-changes";
import { counted, nameHidden, visible } from "./text";
import { DRAWN, SHOW_ALL, drawAll, drawOnOpen, drawRows, hasUndrawn } from "./undrawn";

const RISKS: Record<Approval["risk"], string> = {
  read: "Reads",
  write: "Changes notes",
  delete: "Deletes",
  command: "Runs a command, cannot be undone",
};

/** An argument of a call, with the field that shows it. */
interface Argument {
  name: string;
  text: string;
  /** The text as the field has it, which knows one kind of line end. */
  shown: string;
  input: HTMLTextAreaElement;
}

export class ApprovalCard {
  private round = 0;
  private isDeciding = false;
  private ticked = new Set<number>();
  private approveButton: HTMLButtonElement | null = null;
  private alwaysButton: HTMLButtonElement | null = null;
  private countEl: HTMLElement | null = null;
  private args: Argument[] = [];

  constructor(
    private readonly parent: HTMLElement,
    private readonly conversation: Conversation,
    private readonly question: Question,
    private readonly services: ViewServices,
  ) {
    parent.addClass("vault-agent-card");
    parent.setAttr("role", "group");
    parent.addEventListener(DRAWN, () => this.labelApprove());
  }

  /** Shows the question as it is now. */
  show(): void {
    const { question, parent } = this;
    if (question.outcome !== "") return this.showOutcome();
    if (question.round === this.round) return;
    const hadFocus = parent.contains(parent.doc.activeElement);
    this.round = question.round;
    this.isDeciding = false;
    parent.empty();
    this.draw();
    // A change that differs from the one before is not approved by a second press of the same key.
    if (hadFocus) parent.querySelector<HTMLElement>(".vault-agent-card-title")?.focus();
  }

  private showOutcome(): void {
    const { approval, outcome, request, transaction } = this.question;
    this.parent.empty();
    this.parent.addClass("is-decided");
    const details = this.parent.createEl("details");
    const summary = details.createEl("summary");
    const title = visible(approval?.question ?? request.toolCall.title ?? "A question");
    this.parent.setAttr("aria-label", title);
    summary.createSpan({ text: `${visible(outcome)} ` });
    summary.createSpan({ cls: "vault-agent-muted", text: title });
    details.addEventListener("toggle", () => {
      if (details.childElementCount === 1 && approval !== null) showFileChanges(details, approval);
    });
    if (approval?.plan && outcome === APPROVED && transaction !== null) this.drawAfterPlan(transaction);
  }

  /** Buttons that undo the plan that ran, or keep it as a macro: this one, whatever ran since. */
  private drawAfterPlan(transaction: number): void {
    const buttons = this.parent.createDiv({ cls: "vault-agent-buttons" });
    buttons.createEl("button", { text: "Undo…", attr: { type: "button" } }).addEventListener("click", () => this.conversation.send({ text: `/undo ${transaction}`, shared: [] }));
    const name = buttons.createEl("input", { type: "text", placeholder: "Name of a macro", attr: { "aria-label": "Name of a macro" } });
    const save = () => {
      if (name.value.trim() === "") return name.focus();
      void this.saveMacro(name.value.trim(), transaction);
      name.value = "";
    };
    name.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) save();
    });
    buttons.createEl("button", { text: "Save as macro", attr: { type: "button" } }).addEventListener("click", save);
  }

  private async saveMacro(name: string, transaction: number): Promise<void> {
    try {
      const saved = await this.services.agent.request("_vault/save_macro", { name, transaction });
      this.conversation.notice("info", `Saved ${saved.name}.`);
      this.services.macrosChanged();
    } catch (error) {
      this.conversation.notice("error", messageOf(error));
    }
  }

  private draw(): void {
    const { parent, question } = this;
    const { approval, request } = question;
    const title = visible(approval?.question ?? request.toolCall.title ?? "May this be done?");
    parent.setAttr("aria-label", title);
    const head = parent.createDiv({ cls: "vault-agent-card-head" });
    head.createDiv({ cls: "vault-agent-card-title", text: title, attr: { tabindex: "-1" } });
    if (question.notice !== "") parent.createDiv({ cls: "vault-agent-notice", text: question.notice });
    if (approval === null) {
      for (const text of request.toolCall.content?.flatMap((piece) => ("content" in piece ? [piece.content.text ?? ""] : [])) ?? []) {
        parent.createEl("pre", { text: visible(text), attr: { tabindex: "0", "aria-label": "What would be done" } });
      }
      parent.createEl("pre", { text: visible(JSON.stringify(request.toolCall.rawInput, null, 1) ?? ""), attr: { tabindex: "0", "aria-label": "Arguments" } });
      return this.drawButtons(parent);
    }
    head.createSpan({ cls: `vault-agent-badge is-${approval.risk}`, text: RISKS[approval.risk] });
    head.createSpan({ cls: "vault-agent-badge", text: visible(approval.tool) });
    if (approval.problem) parent.createDiv({ cls: "vault-agent-status is-error", text: visible(approval.problem) });
    const about = parent.createEl("dl", { cls: "vault-agent-about" });
    const line = (name: string, text: string) => {
      about.createEl("dt", { text: name });
      about.createEl("dd", { text: visible(text) });
    };
    if (approval.purpose) line("Purpose", approval.purpose);
    line("Undo", approval.undo);
    if (approval.leaves) line("Leaves this computer", approval.leaves);
    const showsChange = approval.files.length + approval.folders.length + approval.items.length + approval.parts.length > 0;
    this.drawArguments(!showsChange && !approval.plan);
    if (approval.plan) {
      this.drawPlan(approval.plan);
      void showFittingPlugins(parent.createDiv(), this.services.agent, this.instruction);
    }
    const body = parent.createDiv({ cls: "vault-agent-card-body" });
    if (approval.items.length > 0) this.drawItems(body, approval.items);
    else if (approval.parts.length > 1 && this.offers("pick")) this.drawParts(body, approval);
    else if (approval.files.length + approval.folders.length + approval.notices.length > 0) showFileChanges(body, approval);
    this.drawButtons(parent);
  }

  /** What the person asked for, without the name of a command. */
  private get instruction(): string {
    const said = this.conversation.entries.findLast((entry) => entry.kind === "person");
    return said === undefined ? "" : said.text.replace(/^\/\S+\s*/, "");
  }

  private offers(option: string): boolean {
    return this.question.request.options.some(({ optionId }) => optionId === option);
  }

  // The arguments

  /** The arguments as fields, closed. They are shown in full before them if nothing else says what would be done. */
  private drawArguments(areShown: boolean): void {
    this.args = [];
    const { rawInput } = this.question.request.toolCall;
    if (typeof rawInput !== "object" || rawInput === null || Array.isArray(rawInput)) return;
    const fields = Object.entries(rawInput as Record<string, unknown>);
    if (fields.length === 0) return;
    const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value, null, 1));
    for (const [name, value] of areShown ? fields : []) {
      this.parent.createDiv({ cls: "vault-agent-muted", text: visible(name) });
      this.parent.createEl("pre", { text: visible(text(value)), attr: { tabindex: "0", "aria-label": visible(name) } });
    }
    const details = this.parent.createEl("details", { cls: "vault-agent-arguments" });
    details.createEl("summary", { text: this.offers("edit") ? "Arguments, which you can edit" : "Arguments" });
    for (const [name, value] of fields) {
      const written = text(value);
      const label = details.createEl("label", { cls: "vault-agent-field" });
      label.createSpan({ text: visible(typeof value === "string" ? name : `${name} (JSON)`) });
      const input = label.createEl("textarea", { attr: { rows: "2", spellcheck: "false" } });
      input.value = written;
      input.readOnly = !this.offers("edit");
      nameHidden(input, written);
      input.addEventListener("input", () => this.labelApprove());
      this.args.push({ name, text: written, shown: input.value, input });
    }
  }

  /** Whether a field differs from what is shown below it. */
  private get isEdited(): boolean {
    return this.offers("edit") && this.args.some(({ shown, input }) => input.value !== shown);
  }

  /** The arguments with what was edited. */
  private get edited(): Record<string, string> {
    return Object.fromEntries(this.args.map(({ name, text, shown, input }) => [name, input.value === shown ? text : input.value]));
  }

  // The plan

  /** The steps of a plan, with boxes if some can be left out. */
  private drawPlan({ goal, assumptions, steps, notes, links }: ApprovalPlan): void {
    const plan = this.parent.createDiv({ cls: "vault-agent-plan" });
    plan.createDiv({ cls: "vault-agent-of", text: visible(goal) });
    for (const assumption of assumptions) plan.createDiv({ cls: "vault-agent-muted", text: visible(`Assumes: ${assumption}`) });
    plan.createDiv({ cls: "vault-agent-muted", text: [counted(steps.length, "step"), counted(notes, "note"), counted(links, "link")].join(", ") });
    const canPick = this.offers("pick");
    if (canPick) this.drawTicks(plan, steps.length, "step");
    // A step that does not run now, because it was left out or depends on one that was, can be ticked again.
    steps.forEach(({ skipped }, at) => this.tick(at, !skipped));
    const list = plan.createEl("ol", { cls: "vault-agent-steps" });
    steps.forEach(({ tool, preview, risk, calls, skipped, notices }, at) => {
      const row = list.createEl("li");
      const label = row.createEl(canPick ? "label" : "div", { cls: "vault-agent-item" });
      if (canPick) this.drawBox(label, [at], () => this.counted(steps.length, "step"));
      const text = label.createDiv({ cls: "vault-agent-excerpt" });
      text.createSpan({ text: visible(preview ?? tool) });
      text.createSpan({ cls: "vault-agent-muted", text: visible(` ${tool}${calls > 1 ? `, ${calls} times` : ""}`) });
      if (risk === "delete" || risk === "command") text.createSpan({ cls: `vault-agent-badge is-${risk}`, text: RISKS[risk] });
      if (skipped) row.createDiv({ cls: "vault-agent-muted", text: visible(`Does not run: ${skipped}`) });
      for (const notice of notices) row.createDiv({ cls: "vault-agent-muted", text: visible(notice) });
    });
    if (canPick) this.counted(steps.length, "step");
  }

  // Ticks

  private drawTicks(parent: HTMLElement, count: number, what: string): void {
    this.ticked = new Set(Array.from({ length: count }, (_, at) => at));
    const bar = parent.createDiv({ cls: "vault-agent-ticks" });
    this.countEl = bar.createSpan({ cls: "vault-agent-muted" });
    const button = (text: string, isTicked: boolean) => {
      bar.createEl("button", { text, attr: { type: "button", "aria-label": `${text}: ${what}` } }).addEventListener("click", () => {
        for (let at = 0; at < count; at++) this.tick(at, isTicked);
        for (const box of Array.from(parent.querySelectorAll<HTMLInputElement>("input[type=checkbox]"))) {
          box.checked = isTicked;
          box.indeterminate = false;
        }
        this.counted(count, what);
      });
    };
    button("All", true);
    button("None", false);
    this.counted(count, what);
  }

  private tick(at: number, isTicked: boolean): void {
    if (isTicked) this.ticked.add(at);
    else this.ticked.delete(at);
  }

  private counted(count: number, what: string): void {
    this.countEl?.setText(`${this.ticked.size} of ${counted(count, what)} ticked`);
    this.labelApprove();
  }

  private drawItems(parent: HTMLElement, items: string[]): void {
    const canPick = this.offers("pick");
    if (canPick) this.drawTicks(parent, items.length, "item");
    const list = parent.createDiv({ cls: "vault-agent-rows" });
    drawRows(list, items.length, SHOWN, "more item", (at) => {
      const row = list.createEl(canPick ? "label" : "div", { cls: "vault-agent-item" });
      if (canPick) this.drawBox(row, [at], () => this.counted(items.length, "item"));
      row.createSpan({ cls: "vault-agent-excerpt", text: visible(items[at] ?? "") });
    });
  }

  private drawBox(parent: HTMLElement, parts: number[], ticked: () => void): HTMLInputElement {
    const box = parent.createEl("input", { type: "checkbox" });
    const count = parts.filter((at) => this.ticked.has(at)).length;
    box.checked = count === parts.length;
    box.indeterminate = count > 0 && count < parts.length;
    box.addEventListener("change", () => {
      for (const at of parts) this.tick(at, box.checked);
      ticked();
    });
    return box;
  }

  /** The files of a change, each with its hunks, all with boxes. Files that cannot be left out follow. */
  private drawParts(parent: HTMLElement, { files, folders, notices, parts }: Approval): void {
    this.drawTicks(parent, parts.length, "change");
    const byPath = new Map<string, number[]>();
    parts.forEach(({ path }, at) => byPath.set(path, [...(byPath.get(path) ?? []), at]));
    const paths = [...byPath.entries()];
    const list = parent.createDiv({ cls: "vault-agent-rows" });
    drawRows(list, paths.length, SHOWN, "more file", (row) => {
      const [path, all] = paths[row] as [string, number[]];
      const whole = files.find((file) => file.path === path)?.diff ?? "";
      this.drawFile(list, path, all, parts, whole, row < OPEN);
    });
    const others = files.filter(({ path }) => !byPath.has(path));
    if (others.length + folders.length + notices.length > 0) {
      showFileChanges(parent.createDiv(), { files: others, folders, notices });
    }
  }

  private drawFile(list: HTMLElement, path: string, all: number[], parts: ApprovalPart[], whole: string, isOpen: boolean): void {
    const row = list.createDiv({ cls: "vault-agent-part" });
    const file = this.drawBox(row, all, () => {
      for (const box of Array.from(row.querySelectorAll<HTMLInputElement>(".vault-agent-hunk input"))) box.checked = file.checked;
      this.counted(parts.length, "change");
    });
    file.setAttr("aria-label", visible(`All changes of ${path}`));
    const details = row.createEl("details", { cls: "vault-agent-file" });
    const summary = details.createEl("summary");
    summary.createSpan({ cls: "vault-agent-path", text: visible(path) });
    summary.createSpan({ cls: "vault-agent-count", text: counted(all.length, "change") });
    drawOnOpen(details, isOpen, () => {
      all.forEach((at, number) => {
        const hunk = details.createDiv({ cls: "vault-agent-hunk" });
        if (all.length > 1) {
          const box = this.drawBox(hunk, [at], () => {
            const count = all.filter((one) => this.ticked.has(one)).length;
            file.checked = count === all.length;
            file.indeterminate = count > 0 && count < all.length;
            this.counted(parts.length, "change");
          });
          box.setAttr("aria-label", visible(`Change ${number + 1} of ${path}`));
        }
        const diff = hunk.createDiv({ cls: "vault-agent-hunk-diff" });
        // A part of a file that was not text has none of its own.
        const text = parts[at]?.diff || whole;
        if (text === "") diff.createDiv({ cls: "vault-agent-muted", text: NO_TEXT });
        else showDiff(diff, text);
      });
    });
  }

  // The decision

  private get count(): number {
    const { approval } = this.question;
    if (approval === null || !this.offers("pick")) return 0;
    if (approval.plan) return approval.plan.steps.length;
    return approval.items.length > 0 ? approval.items.length : approval.parts.length > 1 ? approval.parts.length : 0;
  }

  private get isPartial(): boolean {
    const steps = this.question.approval?.plan?.steps;
    // Of a plan, what is shown is approved as it is shown.
    if (this.count > 0 && steps) return steps.some(({ skipped }, at) => this.ticked.has(at) === (skipped !== null && skipped !== undefined));
    return this.count > 0 && this.ticked.size < this.count;
  }

  private get isSharing(): boolean {
    return (this.question.approval?.items.length ?? 0) > 0;
  }

  /** Whether a press would approve something that was not drawn yet. A change with parts left out is shown again first. */
  private get isUndrawn(): boolean {
    return hasUndrawn(this.parent) && !this.isEdited && (this.isSharing || !this.isPartial);
  }

  private labelApprove(): void {
    const button = this.approveButton;
    if (button === null) return;
    this.alwaysButton?.toggle(!this.isEdited);
    if (this.isEdited) {
      button.setText("Show the change");
      button.disabled = false;
      return;
    }
    if (this.isUndrawn) button.setText(SHOW_ALL);
    else if (this.isSharing) button.setText(this.count > 0 ? `Share ${this.ticked.size}` : "Share");
    else button.setText(this.isPartial ? "Show what is left" : "Approve");
    button.disabled = this.count > 0 && this.ticked.size === 0;
    // It approves the whole, now and later, so that there is nothing to leave out.
    if (this.alwaysButton !== null) this.alwaysButton.disabled = this.isPartial || this.isUndrawn;
  }

  private drawButtons(parent: HTMLElement): void {
    const buttons = parent.createDiv({ cls: "vault-agent-buttons" });
    const button = (text: string, act: () => void, cls = "") => {
      const element = buttons.createEl("button", { text, cls, attr: { type: "button" } });
      // Nor does the second half of a double click, whose first half has drawn what is below it now.
      element.addEventListener("click", (event) => {
        if (event.detail <= 1) act();
      });
      // A key that is still held down from before decides nothing.
      element.addEventListener("keydown", (event) => {
        if (event.repeat) event.preventDefault();
      });
      return element;
    };
    this.approveButton = button("Approve", () => void this.approve("allow"), "mod-cta");
    this.alwaysButton = this.offers("allow_always") ? button("Approve for this conversation", () => void this.approve("always")) : null;
    this.labelApprove();
    const canSay = this.offers("reject_and_say");
    const reason = canSay ? buttons.createEl("input", { type: "text", placeholder: "What to do instead", attr: { "aria-label": "What to do instead" } }) : null;
    const reject = () => this.decide({ kind: "reject", reason: reason?.value.trim() ?? "" });
    reason?.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing && !event.repeat) reject();
    });
    button("Reject", reject);
    if (this.offers("reject_always")) button("Reject for this conversation", () => this.decide({ kind: "never" }));
  }

  private pressed(kind: "allow" | "always"): Decision {
    // The change that is shown is not the one with these arguments, which is shown before it is approved.
    if (this.isEdited) return { kind: "edit", arguments: this.edited };
    if (this.isPartial) return { kind: "ticked", ticked: [...this.ticked].sort((a, b) => a - b) };
    return { kind };
  }

  private async approve(kind: "allow" | "always"): Promise<void> {
    if (this.isDeciding) return;
    if (this.isUndrawn) return drawAll(this.parent, this.parent.querySelector(".vault-agent-card-title"));
    const { question } = this;
    const { round } = question;
    this.isDeciding = true;
    // As it is now: a box that is ticked while editors are saved counts no more.
    const decision = this.pressed(kind);
    try {
      // Text that the person typed a moment ago belongs to the notes.
      const changed = question.approval === null ? false : await saveEditors(this.services.app, pathsBefore(question.approval));
      if (question.round !== round) return;
      this.decide(changed && decision.kind !== "edit" && this.offers("prepare_again") ? { kind: "again" } : decision);
    } finally {
      this.isDeciding = false;
    }
  }

  private decide(decision: Decision): void {
    this.conversation.decide(this.question, decision);
  }
}
