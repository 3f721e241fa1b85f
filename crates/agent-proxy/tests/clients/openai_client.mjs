// The official OpenAI package against the proxy; parrot.mjs says how it is run.

import assert from "node:assert/strict";
import { KEY, MODEL, PLACES, SAY_TOWN, TOWN, TWO_CALLS, URL, count, load, run, waitForNoReplies } from "./parrot.mjs";

const { OpenAI } = load("openai");
const { zodResponseFormat, zodTextFormat } = load("openai/helpers/zod");
const { z } = load("zod");

const client = new OpenAI({ baseURL: URL, apiKey: KEY, maxRetries: 0, timeout: 20_000 });
const parameters = { type: "object", properties: { at: { type: "string" } }, required: ["at"] };
const look = { name: "look", description: "Looks somewhere.", parameters };
const tools = [{ type: "function", strict: false, ...look }];
const town = z.object({ town: z.string(), number: z.number() });
const asked = (content) => ({ model: MODEL, messages: [{ role: "user", content }] });
const placesOf = (calls) => calls.map((call) => JSON.parse((call.function ?? call).arguments).at);

await run("openai", {
  async responses() {
    const answer = await client.responses.create({ model: MODEL, input: "say Hëllo." });
    assert.equal(answer.output_text, "Hëllo.");
    const stream = client.responses.stream({ model: MODEL, input: TWO_CALLS, tools });
    let text = "";
    for await (const event of stream) if (event.type === "response.output_text.delta") text += event.delta;
    const first = await stream.finalResponse();
    const calls = first.output.filter((item) => item.type === "function_call");
    assert.equal(text, "I look.");
    assert.deepEqual(placesOf(calls), PLACES);
    const results = calls.map(({ call_id }) => ({ type: "function_call_output", call_id, output: "crimson" }));
    const input = [{ role: "user", content: TWO_CALLS }, ...first.output, ...results];
    const second = await client.responses.create({ model: MODEL, input, tools });
    assert.equal(count(second.output_text, "crimson"), 2);
  },
  async chat() {
    const answer = await client.chat.completions.create({ ...asked(TWO_CALLS), tools: [{ type: "function", function: look }] });
    assert.deepEqual(placesOf(answer.choices[0].message.tool_calls), PLACES);
    const seen = [];
    const looks = ({ at }) => (seen.push(at), "crimson");
    const runnable = { type: "function", function: { ...look, parse: JSON.parse, function: looks } };
    for (const stream of [false, true]) {
      const runner = client.chat.completions.runTools({ ...asked(TWO_CALLS), tools: [runnable], stream });
      assert.equal(count(await runner.finalContent(), "crimson"), 2);
    }
    assert.deepEqual(seen, [...PLACES, ...PLACES]);
  },
  async structuredOutput() {
    const format = zodTextFormat(town, "town");
    const answer = await client.responses.parse({ model: MODEL, input: SAY_TOWN, text: { format } });
    assert.deepEqual(answer.output_parsed, TOWN);
    const response_format = zodResponseFormat(town, "town");
    const completion = await client.chat.completions.parse({ ...asked(SAY_TOWN), response_format });
    assert.deepEqual(completion.choices[0].message.parsed, TOWN);
  },
  async errors() {
    await assert.rejects(client.responses.create({ model: MODEL, input: "refuse rate-limit" }), OpenAI.RateLimitError);
    await assert.rejects(client.chat.completions.create(asked("refuse context-too-long")), OpenAI.BadRequestError);
    await assert.rejects(client.responses.create({ model: MODEL, input: "say Hel\ncut" }), OpenAI.InternalServerError);
    const reference = [{ type: "item_reference", id: "msg_1" }];
    await assert.rejects(client.responses.create({ model: MODEL, input: reference }), { status: 400, param: "input[0].id" });
  },
  async cancelled() {
    const stream = await client.responses.create({ model: MODEL, input: "say x\nwait", stream: true });
    for await (const event of stream) if (event.type === "response.output_text.delta") break;
    const chat = await client.chat.completions.create({ ...asked("say x\nwait"), stream: true });
    for await (const chunk of chat) if (chunk.choices[0].delta.content) break;
    await waitForNoReplies();
  },
});
