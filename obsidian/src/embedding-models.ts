// The part of the settings about the models of the search by meaning: downloaded after a question, and used for this vault.

import { Setting } from "obsidian";
import type { Agent } from "./agent/process";
import type { EmbeddingModel, EmbeddingModelsResult, ModelStep } from "./protocol";
import { messageOf } from "./views/approval-modal";
import { visible } from "./views/text";

/** How often the progress is asked for, in milliseconds. */
const EVERY = 300;

const STEPS: Record<ModelStep, string> = { download: "Downloading", quantize: "Quantizing", embed: "Embedding your notes with" };

export class EmbeddingModelSettings {
  private reading = 0;

  constructor(
    private readonly parent: HTMLElement,
    private readonly agent: Agent,
  ) {}

  /** Shows the models; nothing while the program is not there. Work that is under way is followed. */
  async show(): Promise<void> {
    const reading = ++this.reading;
    this.parent.empty();
    if (this.agent.state.kind !== "ready") return;
    try {
      const state = await this.agent.request("_vault/embedding_models", {});
      if (reading === this.reading) this.draw(state);
    } catch (error) {
      if (reading === this.reading) this.parent.setText(messageOf(error));
    }
  }

  /** Ends following work, which itself goes on. */
  hide(): void {
    this.reading++;
  }

  private draw({ used, models, work }: EmbeddingModelsResult): void {
    this.parent.empty();
    new Setting(this.parent).setName("Search by meaning").setHeading();
    const select = new Setting(this.parent).setName("Model of this vault").setDesc("A model that is not on this computer is downloaded after you have agreed to its size, address and licence. Then your notes are embedded again; until that is done, the search uses the old model.");
    const actions = this.parent.createDiv();
    const chosen = models.find(({ name }) => name === (work?.name ?? used)) ?? models[0];
    const describe = (model: EmbeddingModel | undefined) => {
      actions.empty();
      if (model === undefined) return;
      const setting = new Setting(actions).setDesc(visible(model.description));
      const act = model.installed ? () => this.use(model, actions) : () => this.ask(model, actions);
      const name = model.installed ? "Use it for this vault" : "Download…";
      setting.addButton((button) => button.setButtonText(name).setDisabled(model.name === used).onClick(act));
    };
    select.addDropdown((dropdown) => {
      dropdown.selectEl.setAttribute("aria-label", "Model of this vault");
      for (const { name, installed, tested } of models) {
        const notes = [...(installed ? [] : ["not downloaded"]), ...(tested ? [] : ["not tested by us"])];
        dropdown.addOption(name, notes.length > 0 ? `${name} (${notes.join(", ")})` : name);
      }
      dropdown.setValue(chosen?.name ?? "").onChange((value) => describe(models.find(({ name }) => name === value)));
    });
    describe(chosen);
    // Begun before these settings were opened.
    if (work !== null && work !== undefined) void this.follow(actions, null);
  }

  /** Asks the hub what the download is, and the person whether to begin it. */
  private async ask(model: EmbeddingModel, parent: HTMLElement): Promise<void> {
    const reading = this.reading;
    parent.empty();
    const statusEl = status(parent, "Asking for its size…");
    try {
      const { text, revision } = await this.agent.request("_vault/describe_download", { name: model.name });
      if (reading !== this.reading) return;
      statusEl.setText(visible(text));
      new Setting(parent)
        .addButton((button) => button.setButtonText("Download it").setCta().onClick(() => this.follow(parent, (signal) => this.agent.request("_vault/add_embedding_model", { name: model.name, revision }, signal))))
        .addButton((button) => button.setButtonText("Cancel").onClick(() => this.show()));
    } catch (error) {
      fail(statusEl, error);
    }
  }

  private use(model: EmbeddingModel, parent: HTMLElement): Promise<void> {
    return this.follow(parent, (signal) => this.agent.request("_vault/use_embedding_model", { name: model.name }, signal));
  }

  /** Shows the progress of work until it has ended: of a request, or without one of work that another began. */
  private async follow(parent: HTMLElement, begin: ((signal: AbortSignal) => Promise<EmbeddingModelsResult>) | null): Promise<void> {
    const reading = this.reading;
    parent.empty();
    const statusEl = status(parent, "Beginning…");
    const bar = parent.createEl("progress", { attr: { max: "1", "aria-label": "Progress" } });
    const stop = new AbortController();
    if (begin !== null) new Setting(parent).addButton((button) => button.setButtonText("Stop").onClick(() => stop.abort()));
    const isHere = () => reading === this.reading && this.agent.state.kind === "ready";
    const progress = async (): Promise<boolean> => {
      const { work } = await this.agent.request("_vault/embedding_models", {});
      if (work === null || work === undefined) return false;
      statusEl.setText(`${STEPS[work.step]} ${visible(work.name)}: ${Math.floor(100 * work.share)} %`);
      bar.value = work.share;
      return true;
    };
    const timer = window.setInterval(() => {
      if (!isHere()) window.clearInterval(timer);
      else
        void progress().then(
          (isUnderWay) => {
            if (begin === null && !isUnderWay && isHere()) void this.show();
          },
          () => undefined,
        );
    }, EVERY);
    if (begin === null) return;
    try {
      const state = await begin(stop.signal);
      if (isHere()) this.draw(state);
    } catch (error) {
      if (!isHere()) return;
      if (stop.signal.aborted) await this.show();
      else {
        parent.empty();
        fail(status(parent, ""), error);
      }
    } finally {
      window.clearInterval(timer);
    }
  }
}

function status(parent: HTMLElement, text: string): HTMLElement {
  return parent.createDiv({ cls: "vault-agent-status", text, attr: { role: "status" } });
}

function fail(statusEl: HTMLElement, error: unknown): void {
  statusEl.addClass("is-error");
  statusEl.setText(visible(messageOf(error)));
}
