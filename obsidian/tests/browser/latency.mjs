// How soon the first results are shown after a key, on many generated notes. Printed, not asserted.

import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { Harness } from "./harness.mjs";

const WORDS =
  "garden compost tomato pruning winter apple tree soil water seed frost bed path wall letter meeting budget chain wheel cello bow scale star comet lens tide harbour bread salt oven lemon sleep walk train ticket museum river bridge cloud thunder candle mirror pencil drawer basket blanket copper marble velvet whistle ladder anchor".split(" ");

/** The same notes each time. */
export async function makeNotes(folder, count) {
  let state = 1;
  const next = (below) => (state = (state * 48_271) % 2_147_483_647) % below;
  const words = (many) => Array.from({ length: many }, () => WORDS[next(WORDS.length)]).join(" ");
  for (let number = 0; number < count; number++) {
    const place = path.join(folder, `Folder ${number % 50}`);
    if (number < 50) await mkdir(place, { recursive: true });
    const paragraphs = Array.from({ length: 3 }, () => `${words(40)}.`).join("\n\n");
    await writeFile(path.join(place, `Note ${number} ${WORDS[next(WORDS.length)]}.md`), `# Note ${number}\n\n${paragraphs} #${WORDS[next(20)]} [[Note ${next(count)}]]\n`);
  }
}

/** Types queries key by key, and prints the time from each key to the first results that are shown for it. */
export async function latency(browser, place) {
  const started = Date.now();
  const app = await Harness.open(browser, place);
  await app.until("ready");
  await app.command("search");
  // All notes can be found by words; embeddings may still be made, as in the first minutes of a new vault.
  await app.page.waitForFunction(
    async () => {
      const { index } = await window.plugin.services.agent.request("_vault/index_state", {});
      return index !== null && index.notes >= 5_000 && index.unread === 0;
    },
    undefined,
    { polling: 200, timeout: 120_000 },
  );
  const indexed = Date.now() - started;
  const queries = ["compost heap in winter", "how to mend a chain", "tag:garden frost"];
  const times = await app.page.evaluate(async (queries) => {
    const input = document.querySelector("[role=combobox]");
    const list = document.querySelector(".vault-agent-results");
    const times = [];
    for (const query of queries) {
      for (let length = 2; length <= query.length; length++) {
        const shown = new Promise((resolve) => {
          const observer = new MutationObserver(() => {
            observer.disconnect();
            resolve(performance.now());
          });
          observer.observe(list, { childList: true });
          window.setTimeout(() => (observer.disconnect(), resolve(null)), 3_000);
        });
        const pressed = performance.now();
        input.value = query.slice(0, length);
        input.dispatchEvent(new Event("input"));
        const at = await shown;
        if (at !== null) times.push(at - pressed);
        // The next key, as fast as people type.
        await new Promise((resolve) => window.setTimeout(resolve, 150));
      }
    }
    return times;
  }, queries);
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.min(times.length - 1, Math.floor(times.length * share))].toFixed(1);
  console.log(`5,000 notes, found by words after ${(indexed / 1_000).toFixed(1)} s; first results after a key: median ${at(0.5)} ms, 95 % ${at(0.95)} ms, most ${at(1)} ms (${times.length} keys; aim 50 ms)`);
  await app.close();
}
