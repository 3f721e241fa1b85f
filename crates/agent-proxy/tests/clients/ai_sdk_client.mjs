// The AI SDK with both of its packages against the proxy; parrot.mjs says how it is run.

import assert from "node:assert/strict";
import { KEY, MODEL, PLACES, SAY_TOWN, STORE_URL, TOWN, TWO_CALLS, URL, count, load, run, waitForNoReplies } from "./parrot.mjs";

const { generateObject, generateText, stepCountIs, streamText, tool } = load("ai");
const { createOpenAI } = load("@ai-sdk/openai");
const { createOpenAICompatible } = load("@ai-sdk/openai-compatible");
const { z } = load("zod");

const openai = createOpenAI({ baseURL: URL, apiKey: KEY });
const settings = { name: "proxy", baseURL: URL, apiKey: KEY, supportsStructuredOutputs: true };
const models = [openai.responses(MODEL), openai.chat(MODEL), createOpenAICompatible(settings)(MODEL)];
const options = { maxRetries: 0, stopWhen: stepCountIs(3), providerOptions: { openai: { store: false } } };
let seen = [];
const look = tool({
  description: "Looks somewhere.",
  inputSchema: z.object({ at: z.string() }),
  execute: async ({ at }) => (seen.push(at), "crimson"),
});

// The same for all models.
const forEachModel = (check) => async () => {
  for (const model of models) {
    seen = [];
    await check(model);
  }
};

await run("ai", {
  toolsAndASecondTurn: forEachModel(async (model) => {
    const asked = { role: "user", content: TWO_CALLS };
    const first = await generateText({ model, messages: [asked], tools: { look }, ...options });
    assert.deepEqual(seen, PLACES);
    assert.equal(count(first.text, "crimson"), 2);
    const messages = [asked, ...first.response.messages, { role: "user", content: "say Again." }];
    assert.equal((await generateText({ model, messages, tools: { look }, ...options })).text, "Again.");
  }),
  streaming: forEachModel(async (model) => {
    const result = streamText({ model, prompt: TWO_CALLS, tools: { look }, ...options });
    let text = "";
    for await (const piece of result.textStream) text += piece;
    assert.deepEqual(seen, PLACES);
    assert.ok(text.startsWith("I look.") && count(text, "crimson") === 2, text);
  }),
  oneCallWithoutUsage: forEachModel(async (model) => {
    const providerOptions = { openai: { store: false, parallelToolCalls: false }, proxy: { parallel_tool_calls: false } };
    for (const ask of [generateText, streamText]) {
      const result = await ask({ model, prompt: TWO_CALLS, tools: { look }, maxRetries: 0, providerOptions });
      assert.equal((await result.toolCalls).length, 1);
    }
  }),
  structuredOutput: forEachModel(async (model) => {
    const schema = z.object({ town: z.string(), number: z.number() });
    assert.deepEqual((await generateObject({ model, schema, prompt: SAY_TOWN, ...options })).object, TOWN);
  }),
  async whatIsNotStoredIsRefused() {
    const messages = [
      { role: "user", content: "say a" },
      { role: "assistant", content: [{ type: "text", text: "a", providerOptions: { openai: { itemId: "msg_1" } } }] },
      { role: "user", content: "say b" },
    ];
    await assert.rejects(generateText({ model: models[0], messages, maxRetries: 0 }), { statusCode: 400 });
  },
  async whatIsStoredIsReferredTo() {
    seen = [];
    const model = createOpenAI({ baseURL: STORE_URL, apiKey: KEY }).responses(MODEL);
    const settings = { model, tools: { look }, maxRetries: 0, stopWhen: stepCountIs(3) };
    const asked = { role: "user", content: TWO_CALLS };
    const first = await generateText({ messages: [asked], ...settings });
    assert.deepEqual(seen, PLACES);
    assert.equal(count(first.text, "crimson"), 2);
    const messages = [asked, ...first.response.messages, { role: "user", content: "recall" }];
    const second = await generateText({ messages, ...settings });
    assert.ok(JSON.stringify(second.request.body).includes("item_reference"), "the earlier answers are references");
    assert.ok(second.text.includes("I look.") && count(second.text, "crimson") === 4, second.text);
  },
  stopSequences: forEachModel(async (model) => {
    if (model === models[0]) return;
    const prompt = "say Act: a Observation: invented";
    const { text } = await generateText({ model, prompt, stopSequences: ["Observation:"], ...options });
    assert.equal(text, "Act: a ");
  }),
  errors: forEachModel(async (model) => {
    await assert.rejects(generateText({ model, prompt: "refuse rate-limit", ...options }), { statusCode: 429 });
    await assert.rejects(generateText({ model, prompt: "say Hel\ncut", ...options }), { statusCode: 502 });
  }),
  cancelled: forEachModel(async (model) => {
    const stop = new AbortController();
    const result = streamText({ model, prompt: "say x\nwait", abortSignal: stop.signal, ...options });
    for await (const piece of result.textStream) if (piece) stop.abort();
    await waitForNoReplies();
  }),
});
