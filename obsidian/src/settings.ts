// The settings tab: where the program is, which model conversations are with, what may be changed, and the state of the index.

import { PluginSettingTab, Setting, type App, type Plugin } from "obsidian";
import { showListSettings } from "./community-plugins";
import { EmbeddingModelSettings } from "./embedding-models";
import { ModelSettings } from "./model-settings";
import type { IndexStateResult } from "./protocol";
import { showState } from "./views/agent-view";
import type { ConversationServices } from "./views/conversation-view";
import { messageOf } from "./views/approval-modal";
import { counted, visible } from "./views/text";

/** The settings of the person. */
export interface Preferences {
  /** The program's path; empty: it is looked for. */
  program: string;
}

export const DEFAULTS: Preferences = { program: "" };

/** The settings as they were saved, whatever the file holds. */
export function preferencesFrom(saved: unknown): Preferences {
  const program = (saved as Partial<Record<keyof Preferences, unknown>> | null)?.program;
  return { program: typeof program === "string" ? program : DEFAULTS.program };
}

/** The state of the index as lines of a name and a value. */
export function indexLines({ index, vault, version }: IndexStateResult): Array<[string, string]> {
  const lines: Array<[string, string]> = [
    ["Program", `version ${version}`],
    ["Vault", vault],
  ];
  if (index === null || index === undefined) return [...lines, ["Index", "not made yet"]];
  const share = Math.floor((100 * (index.passages - Math.min(index.pending, index.passages))) / Math.max(1, index.passages));
  lines.push(
    ["Notes", `${counted(index.notes, "note")}, ${counted(index.passages, "passage")}`],
    ["Meaning", index.pending === 0 ? "complete" : `${share} % of the passages so far`],
    ["Model", index.model],
    ["Index file", `${index.file} (${(index.bytes / 1_000_000).toFixed(1)} MB)`],
  );
  if (index.unread > 0) lines.push(["Not read yet", counted(index.unread, "note")]);
  if (index.lastSync !== null && index.lastSync !== undefined) lines.push(["Up to date as of", new Date(index.lastSync).toLocaleString()]);
  for (const { path, reason } of index.skipped) lines.push(["Not indexed", `${path}: ${reason}`]);
  for (const advice of index.advice) lines.push(["Advice", advice]);
  return lines;
}

/** The plugin, as far as its settings go. */
export interface PreferencesOwner {
  preferences: Preferences;
  savePreferences(): Promise<void>;
  services: ConversationServices;
}

export class SettingsTab extends PluginSettingTab {
  private unfollow: (() => void) | null = null;
  private meaning: EmbeddingModelSettings | null = null;

  constructor(app: App, private readonly owner: Plugin & PreferencesOwner) {
    super(app, owner);
  }

  override display(): void {
    const { containerEl, owner } = this;
    const { agent } = owner.services;
    containerEl.empty();
    this.unfollow?.();
    let typed = owner.preferences.program;
    new Setting(containerEl)
      .setName("Path of the program")
      .setDesc("The full path of vault-agent. Leave it empty to look for it where programs usually are.")
      .addText((text) =>
        text
          .setPlaceholder("Found by itself")
          .setValue(typed)
          .onChange((value) => {
            typed = value;
          }),
      )
      .addButton((button) =>
        button
          .setButtonText("Apply")
          .setCta()
          .onClick(async () => {
            owner.preferences.program = typed.trim();
            await owner.savePreferences();
            await agent.start();
          }),
      );
    const model = new ModelSettings(containerEl.createDiv(), owner.services);
    this.meaning?.hide();
    const meaning = (this.meaning = new EmbeddingModelSettings(containerEl.createDiv(), agent));
    const pluginsEl = containerEl.createDiv();
    new Setting(containerEl).setName("State").setHeading();
    const stateEl = containerEl.createDiv({ cls: "vault-agent-settings-state" });
    const follow = () => {
      stateEl.empty();
      model.show();
      void meaning.show();
      void showListSettings(pluginsEl, agent);
      if (agent.state.kind === "ready") void this.showIndex(stateEl, agent.state.program);
      else showState(stateEl, agent.state, owner.services);
    };
    this.unfollow = agent.onState(follow);
    follow();
  }

  override hide(): void {
    this.unfollow?.();
    this.unfollow = null;
    this.meaning?.hide();
    super.hide();
  }

  private async showIndex(parent: HTMLElement, program: string): Promise<void> {
    try {
      const state = await this.owner.services.agent.request("_vault/index_state", {});
      parent.empty();
      const list = parent.createEl("dl", { cls: "vault-agent-index" });
      for (const [name, value] of [["Running", program] as [string, string], ...indexLines(state)]) {
        list.createEl("dt", { text: name });
        list.createEl("dd", { text: visible(value) });
      }
      parent.createEl("button", { text: "Refresh", attr: { type: "button" } }).addEventListener("click", () => void this.showIndex(parent, program));
    } catch (error) {
      parent.setText(messageOf(error));
    }
  }
}
