// The page around the built plugin: the stub of the app, and Node's modules over a bridge to the test.

import { installDom } from "../stub/dom";
import * as obsidian from "../stub/obsidian";

/** The functions that the test provides. */
interface Bridge {
  nodeSpawn(program: string, args: string[], folder: string): Promise<number>;
  nodeWrite(id: number, line: string): Promise<void>;
  nodeEnd(id: number): Promise<void>;
  nodeKill(id: number): Promise<void>;
  nodeAccess(path: string): Promise<boolean>;
  vaultFiles(): Promise<Record<string, string>>;
  vaultRead(path: string): Promise<string>;
}

const bridge = window as unknown as Bridge;

type Listener = (...data: unknown[]) => void;

class Emitter {
  private readonly listeners = new Map<string, Listener[]>();

  on(name: string, listener: Listener): this {
    this.listeners.set(name, [...(this.listeners.get(name) ?? []), listener]);
    return this;
  }

  once(name: string, listener: Listener): this {
    return this.on(name, listener);
  }

  setEncoding(): this {
    return this;
  }

  emit(name: string, ...data: unknown[]): void {
    for (const listener of this.listeners.get(name) ?? []) listener(...data);
  }
}

class Child extends Emitter {
  readonly stdout = new Emitter();
  readonly stderr = new Emitter();
  readonly stdin: Emitter & { write(line: string): void; end(): void };
  id = 0;

  constructor(program: string, args: string[], folder: string) {
    super();
    this.stdin = Object.assign(new Emitter(), {
      write: (line: string) => void bridge.nodeWrite(this.id, line),
      end: () => void bridge.nodeEnd(this.id),
    });
    void bridge.nodeSpawn(program, args, folder).then((id) => {
      this.id = id;
      children.set(id, this);
      this.emit("spawn");
    });
  }

  kill(): void {
    void bridge.nodeKill(this.id);
  }
}

const children = new Map<number, Child>();

const modules: Record<string, unknown> = {
  obsidian,
  child_process: { spawn: (program: string, args: string[], { cwd }: { cwd: string }) => new Child(program, args, cwd) },
  "fs/promises": {
    constants: { X_OK: 1 },
    access: async (path: string) => {
      if (!(await bridge.nodeAccess(path))) throw new Error("not there");
    },
  },
  os: { homedir: () => "/home/test" },
};

interface Loaded extends obsidian.Plugin {
  onload(): Promise<void>;
}

/** Makes the app with the vault in a folder, loads the built plugin into it, and opens the views of a layout. */
async function load(source: string, folder: string, saved: unknown, layout: Array<{ type: string; state: Record<string, unknown> }>): Promise<void> {
  installDom(window);
  Object.assign(window, { process: { platform: "linux", env: { PATH: "/nowhere" } } });
  const app = obsidian.makeApp({ folder, list: () => bridge.vaultFiles(), read: (path) => bridge.vaultRead(path) });
  const module = { exports: {} as { default: new (app: obsidian.App, manifest: { id: string }) => Loaded } };
  const require = (name: string): unknown => {
    if (!(name in modules)) throw new Error(`the plugin needs ${name}`);
    return modules[name];
  };
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- as the app loads a plugin
  (new Function("module", "exports", "require", source) as (...args: unknown[]) => void)(module, module.exports, require);
  const plugin = new module.exports.default(app, { id: "vault-agent" });
  plugin.data = saved;
  Object.assign(window, { app, plugin, stub: obsidian });
  await app.vault.refresh();
  await plugin.onload();
  for (const state of layout) await app.workspace.getRightLeaf().setViewState(state);
}

/** An event of a child process, from the test. */
function childEvent(id: number, name: string, data: unknown): void {
  const child = children.get(id);
  if (name === "stdout" || name === "stderr") child?.[name].emit("data", data);
  else child?.emit(name, ...(data as unknown[]));
}

Object.assign(window, { load, childEvent });
