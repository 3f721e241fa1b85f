// The base of all views: what it shows while the program is not there, and how it comes back.

import { ItemView, Platform, type WorkspaceLeaf } from "obsidian";
import type { AgentState } from "../agent/process";
import type { Services } from "./approval-modal";
import { visible } from "./text";

/** The repository of the program, https://github.com/OWNER/NAME. Empty until its first release can be downloaded. */
const REPOSITORY: string = "";

/** How the program is installed: where to type the line, and the line. The lines are those of packaging/README.md. */
export function installation(isWindows: boolean, repository = REPOSITORY): [where: string, line: string] {
  if (repository === "") {
    return ["in a copy of its source code (this needs Rust from rustup.rs)", "cargo install --locked --path crates/vault-agent"];
  }
  return isWindows
    ? ["with PowerShell", "irm REPOSITORY/releases/latest/download/install.ps1 | iex".replace("REPOSITORY", repository)]
    : ["", "curl -fsSL REPOSITORY/releases/latest/download/install.sh | sh".replace("REPOSITORY", repository)];
}

/** The parts of the plugin that open other parts of the app. */
export interface ViewServices extends Services {
  openSettings(): void;
  /** Called when macros can have been saved. */
  macrosChanged(): void;
}

/** Shows a state in which the program cannot answer. */
export function showState(parent: HTMLElement, state: AgentState, services: ViewServices): void {
  parent.empty();
  const page = parent.createDiv({ cls: "vault-agent-page", attr: { role: "status" } });
  const line = (text: string) => void page.createDiv({ text: visible(text) });
  const title = (text: string) => void page.createDiv({ cls: "vault-agent-page-title", text });
  const button = (text: string, act: () => void) => {
    page.createEl("button", { text, attr: { type: "button" } }).addEventListener("click", act);
  };
  const install = () => {
    const [where, command] = installation(Platform.isWin);
    line(`Install it in a terminal${where === "" ? "" : `, ${where}`}:`);
    page.createEl("pre", { attr: { tabindex: "0", "aria-label": "Commands that install vault-agent" } })
      .createEl("code", { text: `${command}\nvault-agent --version` });
  };
  const retry = () => button("Try again", () => void services.agent.start());
  const settings = () => button("Settings", () => services.openSettings());
  switch (state.kind) {
    case "starting":
      return line("Starting vault-agent…");
    case "restarting":
      return line("vault-agent ended. It is started again…");
    case "ready":
      return;
    case "stopped":
      line("vault-agent is stopped.");
      return retry();
    case "missing": {
      title("The program vault-agent was not found");
      line("This plugin shows what the program vault-agent finds in your notes. It runs on your computer and needs no network.");
      install();
      if (state.looked.length === 1) line(`Looked for ${state.looked[0]}, as the settings say.`);
      else {
        const details = page.createEl("details");
        details.createEl("summary", { text: "Where it was looked for" });
        for (const path of state.looked) details.createDiv({ cls: "vault-agent-path", text: visible(path) });
      }
      settings();
      return retry();
    }
    case "too-old":
      title("The program vault-agent is too old");
      line(`${state.program} has version ${state.version}, which this plugin does not know how to ask.`);
      install();
      settings();
      return retry();
    case "too-new":
      title("This plugin is too old");
      line(`${state.program} has version ${state.version}. Update this plugin to use it.`);
      return retry();
    case "failed":
      title("vault-agent does not run");
      page.createEl("pre", { attr: { tabindex: "0", "aria-label": "What vault-agent reported" } }).createEl("code", { text: visible(state.message) });
      settings();
      return retry();
  }
}

export abstract class AgentView extends ItemView {
  private readonly stateEl: HTMLElement;
  protected readonly bodyEl: HTMLElement;

  constructor(leaf: WorkspaceLeaf, protected readonly services: ViewServices) {
    super(leaf);
    this.contentEl.addClass("vault-agent-view");
    this.stateEl = this.contentEl.createDiv();
    this.bodyEl = this.contentEl.createDiv({ cls: "vault-agent-body" });
  }

  override async onOpen(): Promise<void> {
    this.build();
    this.register(this.services.agent.onState((state) => this.follow(state)));
    this.follow(this.services.agent.state);
    return Promise.resolve();
  }

  private follow(state: AgentState): void {
    const isReady = state.kind === "ready";
    // While the program is started again, what was found stays readable.
    this.bodyEl.toggle(isReady || state.kind === "restarting" || (state.kind === "starting" && this.hasContent()));
    showState(this.stateEl, state, this.services);
    if (isReady) this.ready();
  }

  /** Builds the view's elements, once. */
  protected abstract build(): void;

  /** The program is there, for the first time or again. */
  protected abstract ready(): void;

  /** Whether the view shows something already. */
  protected abstract hasContent(): boolean;
}
