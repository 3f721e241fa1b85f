// The OpenAI Agents SDK against the proxy, over both APIs; parrot.mjs says how it is run.

import assert from "node:assert/strict";
import { KEY, MODEL, PLACES, SAY_TOWN, TOWN, TWO_CALLS, URL, count, load, run, waitForNoReplies } from "./parrot.mjs";

const { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run: ask, setTracingDisabled, tool, user } =
  load("@openai/agents");
const { OpenAI } = load("openai");
const { z } = load("zod");

setTracingDisabled(true);
const client = new OpenAI({ baseURL: URL, apiKey: KEY, maxRetries: 0, timeout: 20_000 });
const models = [new OpenAIResponsesModel(client, MODEL), new OpenAIChatCompletionsModel(client, MODEL)];
let seen = [];
const look = tool({
  name: "look",
  description: "Looks somewhere.",
  parameters: z.object({ at: z.string() }),
  execute: async ({ at }) => (seen.push(at), "crimson"),
});
const agent = (model, more) => new Agent({ name: "a", instructions: "Be brief.", model, tools: [look], ...more });

// The same for both APIs.
const forEachModel = (check) => async () => {
  for (const model of models) {
    seen = [];
    await check(model);
  }
};

await run("@openai/agents", {
  toolsAndASecondTurn: forEachModel(async (model) => {
    const first = await ask(agent(model), TWO_CALLS);
    assert.deepEqual(seen, PLACES);
    assert.equal(count(first.finalOutput, "crimson"), 2);
    const second = await ask(agent(model), [...first.history, user("say Again.")]);
    assert.equal(second.finalOutput, "Again.");
  }),
  streaming: forEachModel(async (model) => {
    const result = await ask(agent(model), TWO_CALLS, { stream: true });
    let text = "";
    for await (const piece of result.toTextStream()) text += piece;
    await result.completed;
    assert.equal(count(result.finalOutput, "crimson"), 2);
    assert.ok(text.startsWith("I look."));
  }),
  structuredOutput: forEachModel(async (model) => {
    const outputType = z.object({ town: z.string(), number: z.number() });
    assert.deepEqual((await ask(agent(model, { outputType }), SAY_TOWN)).finalOutput, TOWN);
  }),
  argumentsThatDoNotFitAreToldToTheModel: forEachModel(async (model) => {
    const result = await ask(agent(model), 'call look {"place": 7}\nthen\nsay Mended.');
    assert.equal(result.finalOutput, "Mended.");
    assert.deepEqual(seen, []);
  }),
  errors: forEachModel(async (model) => {
    await assert.rejects(ask(agent(model), "refuse rate-limit"), OpenAI.RateLimitError);
    await assert.rejects(ask(agent(model), "say Hel\ncut"), OpenAI.InternalServerError);
  }),
  cancelled: forEachModel(async (model) => {
    const stop = new AbortController();
    const result = await ask(agent(model), "say x\nwait", { stream: true, signal: stop.signal });
    try {
      for await (const piece of result.toTextStream()) if (piece) stop.abort();
    } catch (error) {
      assert.ok(stop.signal.aborted, error);
    }
    await waitForNoReplies();
  }),
});
