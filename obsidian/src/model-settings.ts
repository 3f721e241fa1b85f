// The part of the settings about the model: chosen, tested, its key handed to the program, and what may be done with it.
// The plugin keeps none of it: the program writes it into its own settings, and the key into the system's keyring.

import { Setting, type ButtonComponent, type TextComponent } from "obsidian";
import type { ModelStateResult } from "./protocol";
import { messageOf } from "./views/approval-modal";
import { privacyNote, type ConversationServices } from "./views/conversation-view";
import { counted, visible } from "./views/text";

let number = 0;

/** The fields as they are typed. */
interface Typed {
  provider: string;
  model: string;
  key: string;
}

type Say = (text: string, isError?: boolean) => void;

export class ModelSettings {
  private readonly id = `vault-agent-models-${++number}`;
  private reading = 0;
  /** The provider whose models are offered. */
  private listed = "";

  constructor(
    private readonly parent: HTMLElement,
    private readonly services: ConversationServices,
  ) {}

  /** Shows the settings as the program has them; nothing while it is not there. */
  show(): void {
    const reading = ++this.reading;
    this.parent.empty();
    if (this.services.agent.state.kind !== "ready") return;
    this.services.agent.request("_vault/model_state", {}).then(
      (state) => {
        if (reading === this.reading) this.draw(state);
      },
      (error: unknown) => {
        if (reading === this.reading) this.parent.setText(messageOf(error));
      },
    );
  }

  private draw(state: ModelStateResult): void {
    const { parent } = this;
    parent.empty();
    this.listed = "";
    new Setting(parent).setName("Model").setHeading();
    const saved = state.provider ?? "";
    const typed: Typed = { provider: saved, model: state.model ?? "", key: "" };
    const statusEl = createDiv({ cls: "vault-agent-status", attr: { role: "status" } });
    const say: Say = (text, isError = false) => {
      statusEl.toggleClass("is-error", isError);
      statusEl.setText(visible(text));
    };
    const list = (name: string) => parent.createEl("datalist", { attr: { id: `${this.id}-${name}` } });
    const named = (text: TextComponent, name: string, withList = false) => {
      text.inputEl.setAttribute("aria-label", name);
      if (withList) text.inputEl.setAttribute("list", `${this.id}-${name}`);
    };
    fill(list("Provider"), state.providers.map(({ name }) => name));
    const models = list("Model");
    let test: ButtonComponent | null = null;
    // A test is of the model that is saved, which is not the one that the fields name then.
    const follow = () => void test?.setDisabled(typed.provider !== saved || typed.model !== (state.model ?? "") || typed.key !== "");
    const fixed = (name: string) => (state.fixed.includes(name) ? " A variable of the environment goes before it." : "");
    new Setting(parent)
      .setName("Provider")
      .setDesc(`Who serves the model: a name such as ollama, openai or anthropic, or an address such as https://host/v1.${fixed("provider")}`)
      .addText((text) => {
        named(text, "Provider", true);
        text.setValue(typed.provider).onChange((value) => {
          typed.provider = value.trim();
          follow();
        });
      });
    new Setting(parent)
      .setName("Model name")
      .setDesc(`The provider's name for the model.${fixed("model")}`)
      .addText((text) => {
        named(text, "Model", true);
        // Only an address that was saved is asked without a word of the person.
        text.inputEl.addEventListener("focus", () => {
          if (typed.provider === saved) void this.offer(saved, models).catch(() => undefined);
        });
        text.setValue(typed.model).onChange((value) => {
          typed.model = value.trim();
          follow();
        });
      })
      .addButton((button) => button.setButtonText("List models").onClick(() => this.list(typed.provider, models, say)));
    const keyIs = state.key === null || state.key === undefined ? "There is no key for the provider." : `The key is from ${state.key}.`;
    new Setting(parent)
      .setName("Key")
      .setDesc(`${keyIs} A key that you type is handed to vault-agent, which keeps it in the system's keyring. This plugin does not save it.`)
      .addText((text) => {
        named(text, "Key");
        text.inputEl.type = "password";
        text.inputEl.autocomplete = "off";
        text.setPlaceholder("Stays as it is").onChange((value) => {
          typed.key = value.trim();
          follow();
        });
      });
    new Setting(parent)
      .setName("Save and test")
      .setDesc("A test sends one sentence to the model that is saved, and no note.")
      .addButton((button) => button.setButtonText("Save").setCta().onClick(() => this.save(typed, say)))
      .addButton((button) => {
        test = button.setButtonText("Test").onClick(() => this.test(say));
      });
    parent.append(statusEl);
    const problem = state.problem ?? "";
    say(problem === "" ? privacyNote(state) : problem, problem !== "" && saved !== "");
    this.drawPolicy(state);
  }

  /** Offers the models of a provider, which is asked for them. */
  private async offer(provider: string, options: HTMLElement): Promise<void> {
    if (provider === "" || provider === this.listed) return;
    this.listed = provider;
    try {
      const { models } = await this.services.agent.request("_vault/models", { provider });
      if (this.listed === provider) fill(options, models);
    } catch (error) {
      if (this.listed === provider) this.listed = "";
      throw error;
    }
  }

  private async list(provider: string, options: HTMLElement, say: Say): Promise<void> {
    if (provider === "") return say("Name a provider first.", true);
    say("Asking for the models…");
    this.listed = "";
    try {
      await this.offer(provider, options);
      say(`${counted(options.childElementCount, "model")} in the list of the field.`);
    } catch (error) {
      say(messageOf(error), true);
    }
  }

  private async save(typed: Typed, say: Say): Promise<void> {
    const { provider, model, key } = typed;
    if (provider === "") return say("Name a provider first.", true);
    try {
      const state = await this.services.agent.request("_vault/set_model", { provider, model: model === "" ? null : model, key: key === "" ? null : key });
      typed.key = "";
      await this.services.conversations.modelChanged();
      this.draw(state);
    } catch (error) {
      say(messageOf(error), true);
    }
  }

  private async test(say: Say): Promise<void> {
    say("Asking the model…");
    try {
      const { model, reply, tookMs } = await this.services.agent.request("_vault/test_model", {});
      say(`${model} answered in ${(tookMs / 1_000).toFixed(1)} s${reply === "" ? "." : `: ${reply}`}`);
    } catch (error) {
      say(messageOf(error), true);
    }
  }

  private drawPolicy({ policy, policyFile }: ModelStateResult): void {
    new Setting(this.parent).setName("What may be done in this vault").setHeading();
    this.parent.createDiv({
      cls: "setting-item-description",
      text: visible(`These settings hold for every program that uses vault-agent, and are in ${policyFile}. They are changed there, or in a terminal: vault-agent config set policy.NAME VALUE`),
    });
    const list = this.parent.createEl("dl", { cls: "vault-agent-index" });
    for (const { name, value, description } of policy) {
      list.createEl("dt", { text: visible(name) });
      const cell = list.createEl("dd", { text: visible(value) });
      cell.createDiv({ cls: "vault-agent-muted", text: visible(description) });
    }
  }
}

/** Puts the values into a list of completions, in place of those before. */
function fill(options: HTMLElement, values: string[]): void {
  options.empty();
  for (const value of values) options.createEl("option", { attr: { value } });
}
