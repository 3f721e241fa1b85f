// The plugin: views, commands and settings over one running vault-agent.

import { FileSystemAdapter, Notice, Platform, Plugin, type TAbstractFile, type WorkspaceLeaf } from "obsidian";
import { nodeRuntime } from "./agent/node-runtime";
import { Agent } from "./agent/process";
import { Conversations } from "./conversation/conversations";
import { AppHost } from "./host";
import type { NamedMacro } from "./protocol";
import { SettingsTab, preferencesFrom, type Preferences } from "./settings";
import { messageOf, redoTransaction, undoTransaction } from "./views/approval-modal";
import { CHANGES_VIEW, ChangesView } from "./views/changes-view";
import { CONVERSATION_VIEW, ConversationView, type ConversationServices } from "./views/conversation-view";
import { MacroModal } from "./views/macro-modal";
import { RELATED_VIEW, RelatedView } from "./views/related-view";
import { RenameModal } from "./views/rename-modal";
import { SEARCH_VIEW, SearchView } from "./views/search-view";

/** The app's own window of settings, which its types do not declare. */
interface AppWithSettings {
  setting?: { open?(): void; openTabById?(id: string): void };
}

export default class VaultAgentPlugin extends Plugin {
  preferences: Preferences = preferencesFrom(null);
  services!: ConversationServices;
  private readonly macroIds: string[] = [];

  override async onload(): Promise<void> {
    const { adapter } = this.app.vault;
    if (!Platform.isDesktopApp || !(adapter instanceof FileSystemAdapter)) {
      new Notice("This plugin works in the desktop app only: it needs a program on the computer.");
      return;
    }
    this.preferences = preferencesFrom(await this.loadData());
    const agent = new Agent(await nodeRuntime(), adapter.getBasePath(), () => this.preferences.program);
    const host = new AppHost(this.app, this.manifest.id);
    agent.host = host;
    // Before the focus leaves the editor, whatever takes it.
    this.registerDomEvent(activeDocument, "focusout", ({ target }) => {
      if (target instanceof Element && target.closest(".cm-editor") !== null) host.remember();
    });
    this.registerDomEvent(activeDocument, "pointerdown", () => host.rememberIfFocused(), { capture: true });
    this.services = {
      app: this.app,
      agent,
      conversations: new Conversations(agent),
      host,
      changed: () => this.changed(),
      macrosChanged: () => void this.readMacros(),
      openSettings: () => this.openSettings(),
      openSearch: () => void this.openSearch(),
    };
    this.register(() => {
      this.services.conversations.end();
      agent.stop();
    });

    this.registerView(SEARCH_VIEW, (leaf) => new SearchView(leaf, this.services));
    this.registerView(RELATED_VIEW, (leaf) => new RelatedView(leaf, this.services));
    this.registerView(CHANGES_VIEW, (leaf) => new ChangesView(leaf, this.services));
    this.registerView(CONVERSATION_VIEW, (leaf) => new ConversationView(leaf, this.services));
    this.registerHoverLinkSource(SEARCH_VIEW, { display: "Vault search", defaultMod: true });
    this.addSettingTab(new SettingsTab(this.app, this));
    this.addCommands();
    // Macros are commands of their own, and follow those of the program.
    this.register(agent.onState(({ kind }) => {
      if (kind === "ready") void this.readMacros();
    }));
    // The program reads the vault, so it starts when the app is no longer busy with that.
    this.app.workspace.onLayoutReady(() => void agent.start());
  }

  private addCommands(): void {
    this.addRibbonIcon("search", "Search by words and meaning", () => void this.openSearch());
    this.addRibbonIcon("message-square", "Conversation with your notes", () => void this.openConversation());
    this.addCommand({ id: "conversation", name: "Open the conversation", callback: () => void this.openConversation() });
    this.addCommand({
      id: "ask-about-selection",
      name: "Use the selection in the conversation",
      editorCallback: async () => (await this.openConversation())?.useSelection(),
    });
    this.addCommand({ id: "search", name: "Search by words and meaning", callback: () => void this.openSearch() });
    this.addCommand({ id: "related", name: "Show related notes and missing links", callback: () => void this.reveal(RELATED_VIEW) });
    this.addCommand({ id: "changes", name: "Show recent changes", callback: () => void this.reveal(CHANGES_VIEW) });
    this.addCommand({ id: "undo", name: "Undo the last change", checkCallback: (checking) => this.whenReady(checking, () => undoTransaction(this.services, null)) });
    this.addCommand({ id: "redo", name: "Redo the last undone change", checkCallback: (checking) => this.whenReady(checking, () => redoTransaction(this.services, null)) });
    this.addCommand({
      id: "rename",
      name: "Rename or move the current note, with a preview of its links",
      checkCallback: (checking) => {
        const file = this.app.workspace.getActiveFile();
        return file !== null && this.whenReady(checking, () => this.rename(file));
      },
    });
    this.addCommand({ id: "restart", name: "Restart vault-agent", callback: () => void this.services.agent.start() });
    this.registerEvent(
      this.app.workspace.on("file-menu", (menu, file) => {
        menu.addItem((item) =>
          item
            .setTitle("Rename or move, with a preview of its links…")
            .setIcon("pencil-line")
            .onClick(() => this.rename(file)),
        );
      }),
    );
  }

  /** Has a command for each macro. */
  private async readMacros(): Promise<void> {
    let macros: NamedMacro[];
    try {
      ({ macros } = await this.services.agent.request("_vault/macros", {}));
    } catch (error) {
      // A program that ended takes its request with it; its page says so, and the next one is asked again.
      if (this.services.agent.state.kind === "ready") new Notice(`The macros could not be read, so their commands stay as they were: ${messageOf(error)}`);
      return;
    }
    for (const id of this.macroIds.splice(0)) this.removeCommand(id);
    for (const saved of macros) {
      const id = `macro-${saved.name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-")}`;
      this.macroIds.push(id);
      this.addCommand({ id, name: `Run saved action: ${saved.name}`, checkCallback: (checking) => this.whenReady(checking, () => new MacroModal(this.services, saved).open()) });
    }
  }

  private whenReady(checking: boolean, act: () => void): boolean {
    if (this.services.agent.state.kind !== "ready") return false;
    if (!checking) act();
    return true;
  }

  private rename(file: TAbstractFile): void {
    new RenameModal(this.services, file).open();
  }

  private async openSearch(): Promise<void> {
    const leaf = await this.reveal(SEARCH_VIEW);
    if (leaf?.view instanceof SearchView) leaf.view.focus();
  }

  private async openConversation(): Promise<ConversationView | null> {
    const leaf = await this.reveal(CONVERSATION_VIEW);
    if (!(leaf?.view instanceof ConversationView)) return null;
    leaf.view.focus();
    return leaf.view;
  }

  private async reveal(type: string): Promise<WorkspaceLeaf | null> {
    const { workspace } = this.app;
    const known = workspace.getLeavesOfType(type)[0];
    const leaf = known ?? workspace.getRightLeaf(false);
    if (leaf === null) return null;
    if (known === undefined) await leaf.setViewState({ type, active: true });
    await workspace.revealLeaf(leaf);
    return leaf;
  }

  /** Has the views show what is there after a change. */
  private changed(): void {
    for (const type of [RELATED_VIEW, CHANGES_VIEW]) {
      for (const { view } of this.app.workspace.getLeavesOfType(type)) {
        if (view instanceof RelatedView || view instanceof ChangesView) view.refresh();
      }
    }
  }

  private openSettings(): void {
    const { setting } = this.app as AppWithSettings;
    setting?.open?.();
    setting?.openTabById?.(this.manifest.id);
  }

  async savePreferences(): Promise<void> {
    await this.saveData(this.preferences);
  }
}
