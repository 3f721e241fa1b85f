// What the clients for Node share: node CLIENT.mjs PROGRAM PACKAGES. PROGRAM is scripted_backend, a model that says what
// it is told, behind the proxy; PACKAGES is a folder in which npm has installed the packages of the client.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";

const [program, packages] = process.argv.slice(2);
export const load = createRequire(path.join(path.resolve(packages), "package.json"));

// One that keeps nothing, and one that does.
const servers = [[], ["--store"]].map((options) => spawn(program, options, { stdio: ["pipe", "pipe", "inherit"] }));
const address = async (server) => (await createInterface({ input: server.stdout })[Symbol.asyncIterator]().next()).value;
export const [URL, STORE_URL] = await Promise.all(servers.map(address));
export const KEY = "a key";
export const MODEL = "parrot";
export const PLACES = ["a {<ä>} b", "c"];
export const TWO_CALLS = `say I look.\ncall look {"at": "${PLACES[0]}"}\ncall look {"at": "c"}\nthen\nrepeat\n`;
export const TOWN = { town: "Oslo", number: 3 };
export const SAY_TOWN = `say ${JSON.stringify(TOWN)}`;

export const count = (text, part) => text.split(part).length - 1;

// Waits until the proxy has given up every reply.
export async function waitForNoReplies() {
  for (let tries = 0; tries < 100; tries++) {
    const health = await (await fetch(URL.replace("/v1", "/health"))).json();
    if (health.replies === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail("a reply goes on that nobody reads");
}

// Runs the functions by their names; `name` is that of the package.
export async function run(name, cases) {
  for (const [title, check] of Object.entries(cases)) {
    await check();
    console.log(`${title}: ok`);
  }
  const ended = servers.map((server) => new Promise((resolve) => server.on("exit", resolve)));
  servers.forEach((server) => server.stdin.end());
  assert.deepEqual(await Promise.all(ended), [0, 0]);
  const { version } = JSON.parse(readFileSync(path.join(packages, "node_modules", name, "package.json")));
  console.log(`${name} ${version}: ${Object.keys(cases).length} passed, 0 failed`);
  process.exit(0);
}
