// Renames or moves a file or folder, with every link that changes shown while the new path is typed.

import { debounce, TFile, type TAbstractFile } from "obsidian";
import { ApprovalModal, tellDone, type Services } from "./approval-modal";

/** How long the typing rests before the links are looked up. */
const REST_MS = 250;

/** The new path as it was typed, with the extension of the file. */
export function newPath(typed: string, extension: string): string {
  const path = typed.trim().replace(/^\/+|\/+$/g, "").replace(/\/{2,}/g, "/");
  if (path === "" || extension === "") return path;
  return path.toLowerCase().endsWith(`.${extension.toLowerCase()}`) ? path : `${path}.${extension}`;
}

export class RenameModal extends ApprovalModal {
  private readonly inputEl: HTMLInputElement;
  private readonly extension: string;

  constructor(services: Services, private readonly file: TAbstractFile) {
    super(services, "Rename or move", "Rename", (result) => tellDone(services, `Renamed to ${this.wanted()}.`, result));
    this.extension = file instanceof TFile ? file.extension : "";
    const field = createDiv({ cls: "vault-agent-field" });
    const id = "vault-agent-new-path";
    field.createEl("label", { text: "New path in the vault", attr: { for: id } });
    const typed = this.extension === "md" ? file.path.slice(0, -3) : file.path;
    this.inputEl = field.createEl("input", { type: "text", value: typed, attr: { id, spellcheck: "false" } });
    this.contentEl.prepend(field);
    const look = debounce(() => this.look(), REST_MS, true);
    this.inputEl.addEventListener("input", () => {
      // The links that were shown are for another path.
      this.forget("…");
      look();
    });
    this.inputEl.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        if (!event.repeat) void this.apply();
      }
    });
  }

  override onOpen(): void {
    const start = this.inputEl.value.lastIndexOf("/") + 1;
    this.inputEl.focus();
    this.inputEl.setSelectionRange(start, this.inputEl.value.length);
    this.forget("The links that change are shown here.");
  }

  private wanted(): string {
    return newPath(this.inputEl.value, this.extension);
  }

  private look(): void {
    const path = this.wanted();
    if (path === "" || path === this.file.path) return this.forget("The links that change are shown here.");
    void this.show({ kind: "rename", path: this.file.path, newPath: path });
  }
}
