// A stub of the app: the classes that the plugin extends and calls, over a vault that a test provides. Its members are
// checked against the types of npm `obsidian` where they are used by the plugin's own code.

import { marked } from "marked";

type Callback = (...data: never[]) => unknown;

export class Events {
  private readonly listeners = new Map<string, Set<Callback>>();

  on(name: string, callback: Callback): { name: string; callback: Callback } {
    const all = this.listeners.get(name) ?? new Set();
    this.listeners.set(name, all.add(callback));
    return { name, callback };
  }

  offref({ name, callback }: { name: string; callback: Callback }): void {
    this.listeners.get(name)?.delete(callback);
  }

  trigger(name: string, ...data: unknown[]): void {
    for (const callback of [...(this.listeners.get(name) ?? [])]) (callback as (...data: unknown[]) => unknown)(...data);
  }
}

export class Component {
  private readonly cleanups: Array<() => unknown> = [];

  register(cleanup: () => unknown): void {
    this.cleanups.push(cleanup);
  }

  registerDomEvent(element: HTMLElement, name: string, callback: (event: Event) => unknown, options?: AddEventListenerOptions): void {
    element.addEventListener(name, callback, options);
    this.register(() => element.removeEventListener(name, callback, options));
  }

  registerEvent(ref: { name: string; callback: Callback; source?: Events }): void {
    this.register(() => app().vault.offref(ref));
    this.register(() => app().workspace.offref(ref));
  }

  private readonly parts = new Set<Component>();

  addChild<Child extends Component>(child: Child): Child {
    this.parts.add(child);
    return child;
  }

  removeChild<Child extends Component>(child: Child): Child {
    if (this.parts.delete(child)) child.unload();
    return child;
  }

  unload(): void {
    for (const part of [...this.parts]) this.removeChild(part);
    for (const cleanup of this.cleanups.splice(0)) cleanup();
  }
}

export abstract class TAbstractFile {
  name: string;

  constructor(public path: string) {
    this.name = path.slice(path.lastIndexOf("/") + 1);
  }
}

export class TFile extends TAbstractFile {
  get extension(): string {
    return /\.([^./]+)$/.exec(this.name)?.[1] ?? "";
  }

  get basename(): string {
    return this.name.replace(/\.[^.]+$/, "");
  }
}

export class TFolder extends TAbstractFile {}

/** The parts of the world that the stub needs. */
export interface World {
  folder: string;
  /** The files of the vault, with something that changes when they change. */
  list(): Promise<Record<string, string>>;
  read(path: string): Promise<string>;
}

export class FileSystemAdapter {
  constructor(private readonly folder: string) {}

  getBasePath(): string {
    return this.folder;
  }
}

export class Vault extends Events {
  readonly configDir = [".", "obsidian"].join("");
  readonly adapter: FileSystemAdapter;
  private files = new Map<string, TFile>();
  private versions: Record<string, string> = {};

  constructor(private readonly world: World) {
    super();
    this.adapter = new FileSystemAdapter(world.folder);
  }

  /** Reads the vault again and tells what has changed, as the app does when a program changes files. */
  async refresh(): Promise<void> {
    const versions = await this.world.list();
    const before = this.versions;
    this.versions = versions;
    for (const path of Object.keys(versions)) {
      const file = this.files.get(path) ?? new TFile(path);
      this.files.set(path, file);
      if (before[path] === undefined) this.trigger("create", file);
      else if (before[path] !== versions[path]) {
        this.trigger("modify", file);
        app().metadataCache.trigger("changed", file);
      }
    }
    for (const path of Object.keys(before).filter((path) => versions[path] === undefined)) {
      const file = this.files.get(path);
      this.files.delete(path);
      this.trigger("delete", file);
    }
  }

  read(file: TFile): Promise<string> {
    return this.world.read(file.path);
  }

  getFileByPath(path: string): TFile | null {
    return this.files.get(path) ?? null;
  }

  getMarkdownFiles(): TFile[] {
    return [...this.files.values()].filter(({ extension }) => extension === "md");
  }

  getAllFolders(): TFolder[] {
    const folders = new Set([...this.files.keys()].filter((path) => path.includes("/")).map((path) => path.slice(0, path.lastIndexOf("/"))));
    return [...folders].sort().map((path) => new TFolder(path));
  }
}

export class MetadataCache extends Events {
  getFirstLinkpathDest(linkpath: string): TFile | null {
    const { vault } = app();
    const name = linkpath.toLowerCase();
    const isMeant = ({ path, basename }: TFile) => [path, path.replace(/\.md$/, ""), basename].some((one) => one.toLowerCase() === name);
    return vault.getMarkdownFiles().find(isMeant) ?? vault.getFileByPath(linkpath);
  }
}

/** A link without its heading or block. */
export function getLinkpath(linktext: string): string {
  return linktext.split("#")[0] ?? "";
}

export class FileManager {
  generateMarkdownLink(file: TFile): string {
    return `[[${file.basename}]]`;
  }
}

export interface Opened {
  path: string;
  state: unknown;
  inNewTab: boolean;
}

export class Workspace extends Events {
  readonly leaves: WorkspaceLeaf[] = [];
  /** The notes that were opened, in order. */
  readonly opened: Opened[] = [];
  /** The texts that were inserted into the editor. */
  readonly inserted: string[] = [];
  readonly saved: string[] = [];
  /** The layout as it was saved last: what a reload of the app opens again. */
  layout: Array<{ type: string; state: Record<string, unknown> }> = [];
  active: TFile | null = null;
  editorLeaf: WorkspaceLeaf | null = null;
  readonly sidebarEl: HTMLElement;

  constructor() {
    super();
    this.sidebarEl = document.body.appendChild(document.createElement("div"));
    this.sidebarEl.className = "workspace-split mod-right-split";
  }

  getActiveFile(): TFile | null {
    return this.active;
  }

  /** Opens a note as a click on it does. */
  openFile(path: string): void {
    this.active = app().vault.getFileByPath(path);
    this.trigger("file-open", this.active);
  }

  onLayoutReady(callback: () => void): void {
    callback();
  }

  getLeaf(kind: "tab" | boolean): { openFile(file: TFile, state: unknown): Promise<void> } {
    return {
      openFile: async (file, state) => {
        this.opened.push({ path: file.path, state, inNewTab: kind === "tab" });
        return Promise.resolve();
      },
    };
  }

  requestSaveLayout(): void {
    this.layout = this.leaves.flatMap(({ view }) => (view === null ? [] : [{ type: view.getViewType(), state: view.getState() }]));
  }

  async openLinkText(linktext: string, _source: string, inNewTab = false): Promise<void> {
    this.opened.push({ path: linktext, state: null, inNewTab });
    return Promise.resolve();
  }

  getRightLeaf(): WorkspaceLeaf {
    const leaf = new WorkspaceLeaf(this);
    this.leaves.push(leaf);
    return leaf;
  }

  getLeavesOfType(type: string): WorkspaceLeaf[] {
    return this.leaves.filter(({ view }) => view?.getViewType() === type);
  }

  iterateAllLeaves(callback: (leaf: WorkspaceLeaf) => unknown): void {
    for (const leaf of [...this.leaves, ...(this.editorLeaf === null ? [] : [this.editorLeaf])]) callback(leaf);
  }

  getMostRecentLeaf(): WorkspaceLeaf | null {
    return this.editorLeaf;
  }

  setActiveLeaf(): void {}

  async revealLeaf(leaf: WorkspaceLeaf): Promise<void> {
    for (const other of this.leaves) other.view?.containerEl.toggle(other === leaf);
    leaf.view?.onResize();
    return Promise.resolve();
  }
}

export class WorkspaceLeaf {
  view: ItemView | null = null;

  constructor(readonly workspace: Workspace) {}

  async setViewState({ type, state }: { type: string; state?: Record<string, unknown> }): Promise<void> {
    const make = viewTypes.get(type);
    if (make === undefined) throw new Error(`there is no view ${type}`);
    this.view = make(this);
    this.workspace.sidebarEl.append(this.view.containerEl);
    await this.view.onOpen();
    if (state !== undefined) await this.view.setState(state, {});
  }
}

const viewTypes = new Map<string, (leaf: WorkspaceLeaf) => ItemView>();

export abstract class ItemView extends Component {
  icon = "";
  readonly app = app();
  readonly containerEl: HTMLElement;
  readonly contentEl: HTMLElement;

  constructor(readonly leaf: WorkspaceLeaf) {
    super();
    this.containerEl = document.createElement("div");
    this.containerEl.className = "workspace-leaf-content";
    this.contentEl = this.containerEl.appendChild(document.createElement("div"));
    this.contentEl.className = "view-content";
  }

  abstract getViewType(): string;
  abstract getDisplayText(): string;
  abstract onOpen(): Promise<void>;
  onResize(): void {}

  getState(): Record<string, unknown> {
    return {};
  }

  async setState(_state: unknown, _result: unknown): Promise<void> {
    return Promise.resolve();
  }

  async onClose(): Promise<void> {
    return Promise.resolve();
  }
}

interface Place {
  line: number;
  ch: number;
}

/** An editor: the text and the selection of its view, and the steps of its undo. */
export class Editor {
  /** The texts before each transaction; for tests. */
  readonly steps: string[] = [];
  isFocused = false;

  constructor(private readonly of: MarkdownView) {}

  getValue(): string {
    return this.of.text;
  }

  getSelection(): string {
    return this.of.selected.text;
  }

  getCursor(side: "from" | "to" | "head" = "head"): Place {
    return this.of.selected[side === "head" ? "to" : side];
  }

  getRange(from: Place, to: Place): string {
    return this.of.text.slice(this.posToOffset(from), this.posToOffset(to));
  }

  hasFocus(): boolean {
    return this.isFocused;
  }

  focus(): void {}

  replaceSelection(text: string): void {
    app().workspace.inserted.push(text);
  }

  offsetToPos(offset: number): Place {
    const lines = this.of.text.slice(0, offset).split("\n");
    return { line: lines.length - 1, ch: lines[lines.length - 1]?.length ?? 0 };
  }

  posToOffset({ line, ch }: Place): number {
    return this.of.text.split("\n").slice(0, line).reduce((sum, { length }) => sum + length + 1, ch);
  }

  transaction({ changes = [] }: { changes?: Array<{ text: string; from: Place; to?: Place }> }): void {
    this.steps.push(this.of.text);
    for (const { text, from, to = from } of changes) {
      const [start, end] = [this.posToOffset(from), this.posToOffset(to)];
      this.of.text = this.of.text.slice(0, start) + text + this.of.text.slice(end);
    }
  }

  undo(): void {
    this.of.text = this.steps.pop() ?? this.of.text;
  }
}

export class MarkdownView extends ItemView {
  file: TFile | null = null;
  /** Called when the view is saved; for tests. */
  onSave: () => Promise<void> = async () => Promise.resolve();
  /** The text in the editor, and the selection; for tests. */
  text = "";
  selected = { text: "", from: { line: 0, ch: 0 }, to: { line: 0, ch: 0 } };
  readonly editor = new Editor(this);

  getViewType(): string {
    return "markdown";
  }

  getDisplayText(): string {
    return this.file?.path ?? "";
  }

  async onOpen(): Promise<void> {
    return Promise.resolve();
  }

  getMode(): string {
    return "source";
  }

  async save(): Promise<void> {
    app().workspace.saved.push(this.file?.path ?? "");
    await this.onSave();
  }
}

/** The app's commands, by the ids that the plugin gave them, and those of the app itself, whose ids have a colon. */
class Commands extends Map<string, Command> {
  get commands(): Record<string, { id: string; name: string }> {
    const all = [...this.entries()].map(([key, { name }]) => ({ id: key.includes(":") ? key : `vault-agent:${key}`, name }));
    return Object.fromEntries(all.map((command) => [command.id, command]));
  }

  executeCommandById(id: string): boolean {
    const command = this.get(id);
    command?.callback?.();
    return command?.callback !== undefined;
  }
}

export class App {
  readonly vault: Vault;
  readonly workspace = new Workspace();
  readonly metadataCache = new MetadataCache();
  readonly fileManager = new FileManager();
  readonly commands = new Commands();

  constructor(world: World) {
    this.vault = new Vault(world);
  }
}

let theApp: App | null = null;

export function makeApp(world: World): App {
  return (theApp = new App(world));
}

function app(): App {
  if (theApp === null) throw new Error("makeApp comes first");
  return theApp;
}

interface Command {
  id: string;
  name: string;
  callback?(): unknown;
  checkCallback?(checking: boolean): unknown;
  editorCallback?(): unknown;
}

export class Plugin extends Component {
  readonly tabs: PluginSettingTab[] = [];
  data: unknown = null;

  constructor(
    readonly app: App,
    readonly manifest: { id: string },
  ) {
    super();
  }

  addCommand(command: Command): void {
    this.app.commands.set(command.id, command);
  }

  removeCommand(id: string): void {
    this.app.commands.delete(id);
  }

  addRibbonIcon(): void {}

  addSettingTab(tab: PluginSettingTab): void {
    this.tabs.push(tab);
  }

  registerView(type: string, make: (leaf: WorkspaceLeaf) => ItemView): void {
    viewTypes.set(type, make);
  }

  registerHoverLinkSource(): void {}

  async loadData(): Promise<unknown> {
    return Promise.resolve(this.data);
  }

  async saveData(data: unknown): Promise<void> {
    this.data = structuredClone(data);
    return Promise.resolve();
  }
}

export abstract class PluginSettingTab {
  readonly containerEl = document.createElement("div");

  constructor(
    readonly app: App,
    readonly plugin: Plugin,
  ) {}

  abstract display(): void;

  hide(): void {
    this.containerEl.remove();
  }
}

export class Setting {
  private readonly settingEl: HTMLElement;
  private readonly nameEl: HTMLElement;

  constructor(parent: HTMLElement) {
    this.settingEl = parent.createDiv("setting-item");
    this.nameEl = this.settingEl.createDiv("setting-item-name");
  }

  setName(name: string): this {
    this.nameEl.setText(name);
    return this;
  }

  setHeading(): this {
    this.settingEl.addClass("setting-item-heading");
    return this;
  }

  setDesc(text: string): this {
    this.settingEl.createDiv({ cls: "setting-item-description", text });
    return this;
  }

  addText(build: (text: unknown) => unknown): this {
    const input = this.settingEl.createEl("input", { type: "text" });
    const name = this.nameEl.textContent ?? "";
    input.setAttribute("aria-label", name);
    const text = {
      inputEl: input,
      setPlaceholder: (placeholder: string) => ((input.placeholder = placeholder), text),
      setValue: (value: string) => ((input.value = value), text),
      onChange: (callback: (value: string) => unknown) => (input.addEventListener("input", () => callback(input.value)), text),
    };
    build(text);
    return this;
  }

  addDropdown(build: (dropdown: unknown) => unknown): this {
    const select = this.settingEl.createEl("select");
    select.setAttribute("aria-label", this.nameEl.textContent ?? "");
    const dropdown = {
      selectEl: select,
      addOption: (value: string, text: string) => (select.createEl("option", { text, value }), dropdown),
      setValue: (value: string) => ((select.value = value), dropdown),
      onChange: (callback: (value: string) => unknown) => (select.addEventListener("change", () => callback(select.value)), dropdown),
    };
    build(dropdown);
    return this;
  }

  addButton(build: (button: unknown) => unknown): this {
    const element = this.settingEl.createEl("button", { attr: { type: "button" } });
    const button = {
      setButtonText: (name: string) => (element.setText(name), button),
      setDisabled: (isDisabled: boolean) => ((element.disabled = isDisabled), button),
      setCta: () => (element.addClass("mod-cta"), button),
      onClick: (callback: () => unknown) => (element.addEventListener("click", callback), button),
    };
    build(button);
    return this;
  }
}

let modals = 0;

export class Modal {
  readonly containerEl = document.createElement("div");
  readonly modalEl: HTMLElement;
  readonly titleEl: HTMLElement;
  readonly contentEl: HTMLElement;
  private focused: Element | null = null;

  constructor(readonly app: App) {
    this.containerEl.className = "modal-container";
    const id = `modal-title-${++modals}`;
    this.modalEl = this.containerEl.createDiv({ cls: "modal", attr: { role: "dialog", "aria-modal": "true", "aria-labelledby": id } });
    this.titleEl = this.modalEl.createDiv({ cls: "modal-title", attr: { id } });
    this.contentEl = this.modalEl.createDiv("modal-content");
    this.containerEl.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
  }

  setTitle(title: string): this {
    this.titleEl.setText(title);
    return this;
  }

  open(): void {
    this.focused = document.activeElement;
    document.body.append(this.containerEl);
    this.onOpen();
  }

  close(): void {
    this.containerEl.remove();
    this.onClose();
    if (this.focused instanceof HTMLElement) this.focused.focus();
  }

  onOpen(): void {}
  onClose(): void {}
}

export class Notice {
  readonly noticeEl: HTMLElement;

  constructor(message: string | DocumentFragment) {
    const known = document.querySelector(".notice-container");
    const container = known ?? document.body.appendChild(document.createElement("div"));
    container.className = "notice-container";
    this.noticeEl = container.appendChild(document.createElement("div"));
    this.noticeEl.className = "notice";
    this.noticeEl.append(message);
  }

  hide(): void {
    this.noticeEl.remove();
  }
}

/**
 * Renders Markdown as the app does where that is dangerous: HTML and pictures pass, plugins act on code blocks and on code
 * that begins with a mark.
 */
export const MarkdownRenderer = {
  async render(_app: App, markdown: string, element: HTMLElement, _path: string, _component: Component): Promise<void> {
    const linked = markdown.replace(/(!?)\[\[([^\]|]+)(?:\|([^\]]+))?\]\]/g, (_, embed: string, link: string, text?: string) =>
      embed === "" ? `<a class="internal-link" data-href="${link}" href="${link}">${text ?? link}</a>` : `<div class="embedded">${link}</div>`,
    );
    element.innerHTML = await marked.parse(linked);
    for (const code of Array.from(element.querySelectorAll("code"))) {
      const runs = code.className.includes("dataviewjs") || (code.textContent ?? "").trim().startsWith("$=");
      if (runs) Object.assign(window, { hacked: code.textContent });
    }
    for (const block of Array.from(element.querySelectorAll("pre"))) block.createEl("button", { cls: "copy-code-button", text: "Copy" });
  },
};

export const Platform = { isDesktopApp: true, isWin: false };

export const Keymap = {
  isModEvent: (event: MouseEvent): "tab" | false => (event.ctrlKey || event.metaKey ? "tab" : false),
};

/** Calls back when calls have rested, or so long after the first of them. */
export function debounce(callback: () => unknown, timeout = 0, resetTimer = false): () => void {
  let timer: number | null = null;
  return () => {
    if (timer !== null && !resetTimer) return;
    if (timer !== null) window.clearTimeout(timer);
    timer = window.setTimeout(() => {
      timer = null;
      callback();
    }, timeout);
  };
}
