// A model that answers as a test says: Chat Completions on loopback, streamed.

import { once } from "node:events";
import { createServer } from "node:http";

/** How long a model pauses between two pieces that are slow. */
const PAUSE_MS = 60;

/** A list of community plugins, as the app's own. */
const PLUGINS = [
  { id: "bed-planner", name: "Bed Planner", author: "A gardener", description: "Plan the beds of your garden, with a note for each bed.", repo: "a/b" },
  { id: "kanban", name: "Kanban", author: "Somebody", description: "Boards of cards for tasks.", repo: "c/d" },
  { id: "../escape", name: "Escape", author: "", description: "A note for each bed.", repo: "e/f" },
];

export class Model {
  /** Gives the reply to a request: a text, `{ slowly: text }`, which can wait `until` a promise is kept, `{ thoughts, text }`, or calls `[{ tool, args }]`. */
  reply = () => "Nothing was planned.";
  requests = [];

  async listen() {
    this.server = createServer((request, response) => {
      let body = "";
      request.on("data", (data) => (body += data));
      request.on("end", () => {
        if (request.url.endsWith("/plugins.json")) return response.end(JSON.stringify(PLUGINS));
        if (request.url.endsWith("/models")) return response.end(JSON.stringify({ data: [{ id: "other" }, { id: "scripted" }] }));
        const asked = JSON.parse(body);
        this.requests.push(asked);
        void this.answer(response, this.reply(asked));
      });
    });
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    this.address = `http://127.0.0.1:${this.server.address().port}/v1`;
  }

  async answer(response, reply) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish_reason = null) => response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    if (Array.isArray(reply)) {
      const calls = reply.map(({ tool, args }, index) => ({ index, id: `call_${this.requests.length}_${index}`, type: "function", function: { name: tool, arguments: JSON.stringify(args) } }));
      send({ tool_calls: calls });
      send({}, "tool_calls");
    } else {
      if (reply.thoughts !== undefined) send({ reasoning_content: reply.thoughts });
      if (reply.slowly !== undefined) {
        for (const piece of reply.slowly.match(/[^]{1,12}/g)) {
          if (response.destroyed) return;
          send({ content: piece });
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        }
        await reply.until;
      } else send({ content: typeof reply === "string" ? reply : reply.text });
      send({}, "stop");
    }
    response.end("data: [DONE]\n\n");
  }

  /** Calls once for each list of calls, then says a text. */
  calls(lists, text = "Done.") {
    const left = [...lists];
    this.reply = () => left.shift() ?? text;
  }

  /** The last message of the person that the model was sent, with what was shared. */
  heard() {
    const { messages } = this.requests.at(-1);
    return JSON.stringify(messages.findLast(({ role }) => role === "user").content);
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
