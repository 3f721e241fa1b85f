// A browser with the built plugin in it, over a real vault-agent and a vault on the disk.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { access, mkdir, readFile, readdir, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const axeSource = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const ADDRESS = "https://app.test/";

/** All files of a folder, with something that changes when they change. */
export async function filesOf(folder, of = (_, info) => `${info.mtimeMs} ${info.size}`) {
  const files = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath ?? entry.path, entry.name);
    const name = path.relative(folder, file).split(path.sep).join("/");
    if (entry.isFile() && !name.split("/").some((part) => part.startsWith("."))) files[name] = await of(file, await stat(file));
  }
  return files;
}

/** All files of a folder with their texts. */
export const textsOf = (folder) => filesOf(folder, (file) => readFile(file, "utf8"));

/** The variables of the environment with which the program keeps all its files in one folder. */
export function environment(home) {
  const folders = { XDG_STATE_HOME: "state", XDG_CACHE_HOME: "cache", XDG_CONFIG_HOME: "config", XDG_DATA_HOME: "data" };
  const variables = Object.entries(folders).map(([name, folder]) => [name, path.join(home, folder)]);
  return { PATH: "/usr/bin:/bin", HOME: home, ...Object.fromEntries(variables) };
}

export class Harness {
  children = new Map();
  failures = [];
  requests = [];

  static async open(browser, { folder, home, program, width = 420 }) {
    const harness = new Harness();
    Object.assign(harness, { folder, home, program, width });
    await mkdir(home, { recursive: true });
    harness.page = await browser.newPage({ viewport: { width, height: 900 } });
    await harness.start();
    return harness;
  }

  async start() {
    const { page } = this;
    page.on("pageerror", (error) => this.failures.push(String(error)));
    page.on("console", (message) => message.type() === "error" && this.failures.push(message.text()));
    await page.route("**/*", (route) => {
      const url = route.request().url();
      if (url !== ADDRESS) {
        this.requests.push(url);
        return route.abort();
      }
      const policy = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'";
      const head = `<meta charset="utf-8"><title>Vault agent</title><meta http-equiv="Content-Security-Policy" content="${policy}">`;
      return route.fulfill({ contentType: "text/html", body: `<!doctype html><html lang="en"><head>${head}</head><body></body></html>` });
    });
    await page.exposeFunction("nodeSpawn", (program, args, folder) => this.spawn(program, args, folder));
    await page.exposeFunction("nodeWrite", (id, line) => void this.children.get(id)?.stdin.write(line));
    await page.exposeFunction("nodeEnd", (id) => void this.children.get(id)?.stdin.end());
    await page.exposeFunction("nodeKill", (id) => void this.children.get(id)?.kill());
    await page.exposeFunction("nodeAccess", (file) => access(file, constants.X_OK).then(() => true, () => false));
    await page.exposeFunction("vaultRead", (name) => readFile(path.join(this.folder, name), "utf8"));
    await page.exposeFunction("vaultFiles", () => filesOf(this.folder));
    await page.goto(ADDRESS);
    for (const file of [here("theme.css"), here("../../styles.css")]) await page.addStyleTag({ path: file });
    const bundled = await build({ entryPoints: [here("page.ts")], bundle: true, write: false, format: "iife", logLevel: "warning" });
    await page.addScriptTag({ content: bundled.outputFiles[0].text });
    await page.addScriptTag({ content: axeSource });
    await this.load(this.folder, { program: this.program }, []);
  }

  async load(folder, saved, layout) {
    const source = await readFile(here("../../main.js"), "utf8");
    await this.page.evaluate(([source, folder, saved, layout]) => window.load(source, folder, saved, layout), [source, folder, saved, layout]);
  }

  /** Loads the app and the plugin again, with the layout and the settings as they were saved last. */
  async reload() {
    const { layout, data } = await this.page.evaluate(() => ({ layout: window.app.workspace.layout, data: window.plugin.data }));
    const ended = [...this.children.values()].map((child) => new Promise((resolve) => child.once("close", resolve)));
    await this.page.evaluate(() => {
      window.plugin.unload();
      document.body.replaceChildren();
    });
    await Promise.all(ended);
    await this.load(this.folder, data, layout);
  }

  async openSettings() {
    await this.page.evaluate(() => {
      const tab = window.plugin.tabs[0];
      const content = document.body.createDiv("vertical-tab-content");
      for (const view of document.querySelectorAll(".workspace-split")) view.hide();
      content.append(tab.containerEl);
      tab.display();
    });
  }

  async closeSettings() {
    await this.page.evaluate(() => {
      window.plugin.tabs[0].hide();
      document.querySelector(".vertical-tab-content").remove();
      for (const view of document.querySelectorAll(".workspace-split")) view.show();
    });
  }

  spawn(program, args, folder) {
    const child = spawn(program, args, { cwd: folder, env: environment(this.home) });
    const id = child.pid ?? 0;
    this.children.set(id, child);
    // In one order, and after the page knows the process.
    let last = new Promise((resolve) => setImmediate(resolve));
    const tell = (name, data) => {
      last = last.then(() => this.page.evaluate(([id, name, data]) => window.childEvent(id, name, data), [id, name, data])).catch(() => undefined);
    };
    child.stdin.on("error", () => undefined);
    child.stdout.setEncoding("utf8").on("data", (chunk) => tell("stdout", chunk));
    child.stderr.setEncoding("utf8").on("data", (chunk) => tell("stderr", chunk));
    child.on("close", (code, signal) => {
      this.children.delete(id);
      tell("close", [code, signal]);
    });
    return id;
  }

  /** The one process that runs. */
  get child() {
    assert.equal(this.children.size, 1);
    return [...this.children.values()][0];
  }

  state() {
    return this.page.evaluate(() => window.plugin.services.agent.state);
  }

  async until(kind) {
    await this.page.waitForFunction((kind) => window.plugin.services.agent.state.kind === kind, kind);
  }

  request(method, params) {
    return this.page.evaluate(([method, params]) => window.plugin.services.agent.request(method, params), [method, params]);
  }

  /** Waits until the index is complete. */
  async indexed() {
    await this.until("ready");
    await this.page.waitForFunction(
      async () => {
        const { index } = await window.plugin.services.agent.request("_vault/index_state", {});
        return index !== null && index.passages > 0 && index.pending === 0 && index.unread === 0;
      },
      undefined,
      { polling: 200, timeout: 120_000 },
    );
  }

  /** Runs a command of the plugin, as the command palette does. */
  async command(id) {
    await this.page.evaluate(async (id) => {
      const command = window.app.commands.get(id);
      if (command.checkCallback?.(true) === false) throw new Error(`${id} is not available`);
      await (command.callback?.() ?? command.checkCallback?.(false));
    }, id);
  }

  openFile(file) {
    return this.page.evaluate((file) => window.app.workspace.openFile(file), file);
  }

  /** Tells the app that files have changed, as its watcher does. */
  refresh() {
    return this.page.evaluate(() => window.app.vault.refresh());
  }

  /** No finding of axe, in light and dark; and pictures. */
  async check(name, { pictures = false } = {}) {
    for (const theme of ["light", "dark"]) {
      await this.page.evaluate((theme) => document.body.classList.toggle("theme-dark", theme === "dark"), theme);
      // The app's own window has landmarks and headings, which the stub has not.
      const options = { rules: { region: { enabled: false }, "landmark-one-main": { enabled: false }, "page-has-heading-one": { enabled: false } } };
      const { violations } = await this.page.evaluate((options) => window.axe.run(document, options), options);
      const said = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("\n")}`);
      assert.deepEqual(said, [], `${name}, ${theme}`);
      if (pictures) await this.picture(`${name}-${theme}`);
    }
    await this.page.evaluate(() => document.body.classList.remove("theme-dark"));
    const overflow = await this.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(overflow <= 0, `${name} is ${overflow} px too wide`);
  }

  async picture(name) {
    const folder = process.env.SCREENSHOTS;
    if (folder === undefined || folder === "") return;
    await mkdir(folder, { recursive: true });
    const notices = this.page.locator(".notice-container");
    const hide = (isHidden) => notices.evaluateAll((all, isHidden) => all.forEach((one) => one.toggleAttribute("hidden", isHidden)), isHidden);
    await hide(true);
    await this.page.screenshot({ path: path.join(folder, `${name}.png`) });
    await hide(false);
  }

  async close() {
    assert.deepEqual(this.failures, []);
    assert.deepEqual(this.requests, [], "the plugin asks the network for nothing");
    const ended = [...this.children.values()].map((child) => new Promise((resolve) => child.once("close", resolve)));
    await this.page.evaluate(() => window.plugin.unload());
    await Promise.all(ended);
    await this.page.close();
  }
}
