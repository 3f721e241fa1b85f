// Community plugins that fit a plan. Their list is downloaded only when the person asks for it, and nothing is installed.

import { Setting } from "obsidian";
import type { Agent } from "./agent/process";
import type { PluginList } from "./protocol";
import { messageOf } from "./views/approval-modal";
import { counted, visible } from "./views/text";

const LIST_ADDRESS = "https://raw.githubusercontent.com/obsidianmd/obsidian-releases/master/community-plugins.json";

/** How many plugins are named for a plan. */
const SHOWN = 3;

/** Names plugins that fit an instruction, as links to their pages in the app. */
export async function showFittingPlugins(parent: HTMLElement, agent: Agent, instruction: string): Promise<void> {
  if (instruction.trim() === "") return;
  // Without an answer the plan is complete, so an error is not worth a message.
  const found = await agent.request("_vault/plugins", { instruction, limit: SHOWN }).catch(() => null);
  if (found === null || found.plugins.length === 0) return;
  const line = parent.createDiv({ cls: "vault-agent-muted", text: "Community plugins that may fit: " });
  found.plugins.forEach(({ id, name, description }, at) => {
    if (at > 0) line.appendText(", ");
    line.createEl("a", { text: visible(name), attr: { href: `obsidian://show-plugin?id=${encodeURIComponent(id)}`, title: visible(description ?? "") } });
  });
}

/** The part of the settings about the list. */
export async function showListSettings(parent: HTMLElement, agent: Agent): Promise<void> {
  parent.empty();
  if (agent.state.kind !== "ready") return;
  try {
    draw(parent, agent, (await agent.request("_vault/plugins", {})).list ?? null);
  } catch (error) {
    parent.setText(messageOf(error));
  }
}

function draw(parent: HTMLElement, agent: Agent, list: PluginList | null): void {
  parent.empty();
  let address = list?.address ?? LIST_ADDRESS;
  const state = list === null ? "It is not downloaded." : `${counted(list.count, "plugin")}, downloaded on ${new Date(list.downloaded).toLocaleDateString()}.`;
  new Setting(parent).setName("Community plugins").setHeading();
  const setting = new Setting(parent)
    .setName("List of plugins")
    .setDesc(`With this list, a plan names plugins that fit your instruction. It is searched on this computer, and no plugin is installed. ${state}`)
    .addText((text) => {
      text.inputEl.setAttribute("aria-label", "Address of the list");
      text.setValue(address).onChange((value) => {
        address = value.trim();
      });
    });
  const statusEl = parent.createDiv({ cls: "vault-agent-status", attr: { role: "status" } });
  setting.addButton((button) =>
    button.setButtonText(list === null ? "Download" : "Download again").onClick(async () => {
      button.setDisabled(true);
      statusEl.removeClass("is-error");
      statusEl.setText("Downloading…");
      try {
        draw(parent, agent, await agent.request("_vault/download_plugins", { address }));
      } catch (error) {
        statusEl.addClass("is-error");
        statusEl.setText(visible(messageOf(error)));
        button.setDisabled(false);
      }
    }),
  );
}
