import { describe, expect, it, vi } from "vitest";
import { Cancelled, Connection, ConnectionClosed, RpcError } from "../../src/agent/rpc";

function connect() {
  const written: Array<Record<string, unknown>> = [];
  const connection = new Connection((line) => written.push(JSON.parse(line) as Record<string, unknown>));
  const answer = (id: number, rest: object) => connection.receive(`${JSON.stringify({ jsonrpc: "2.0", id, ...rest })}\n`);
  return { connection, written, answer };
}

describe("Connection", () => {
  it("matches answers in any order and in pieces", async () => {
    const { connection, written } = connect();
    const [first, second] = [connection.request("a", { n: 1 }), connection.request("b", {})];
    expect(written).toEqual([
      { jsonrpc: "2.0", id: 1, method: "a", params: { n: 1 } },
      { jsonrpc: "2.0", id: 2, method: "b", params: {} },
    ]);
    const lines = '{"jsonrpc":"2.0","id":2,"result":"second"}\nno JSON\n{"jsonrpc":"2.0","id":1,"result":"first"}\n';
    for (const character of lines) connection.receive(character);
    expect(await Promise.all([first, second])).toEqual(["first", "second"]);
  });

  it("gives errors their kind and remedy", async () => {
    const { connection, answer } = connect();
    const asked = connection.request("a", {});
    answer(1, { error: { code: -32603, message: "long", data: { code: "CONFLICT", message: "changed", remedy: "ask again" } } });
    const error = await asked.catch((error: unknown) => error);
    expect(error).toBeInstanceOf(RpcError);
    expect(error).toMatchObject({ message: "changed", code: -32603, kind: "CONFLICT", remedy: "ask again" });
  });

  it("cancels an aborted request in the program and drops its late answer", async () => {
    const { connection, written, answer } = connect();
    const abort = new AbortController();
    const asked = connection.request("slow", {}, abort.signal);
    abort.abort();
    await expect(asked).rejects.toBeInstanceOf(Cancelled);
    expect(written[1]).toEqual({ jsonrpc: "2.0", method: "$/cancel_request", params: { requestId: 1 } });
    answer(1, { result: "late" });
    await expect(connection.request("x", {}, abort.signal)).rejects.toBeInstanceOf(Cancelled);
    expect(written).toHaveLength(2);
  });

  it("rejects what is under way and what comes later when it is closed", async () => {
    const { connection, written } = connect();
    const asked = connection.request("a", {});
    connection.close(new ConnectionClosed("gone"));
    await expect(asked).rejects.toThrow("gone");
    await expect(connection.request("b", {})).rejects.toBeInstanceOf(ConnectionClosed);
    expect(written).toHaveLength(1);
  });

  it("answers requests of the program, and aborts those that it withdraws", async () => {
    const written: Array<Record<string, unknown>> = [];
    const told: unknown[] = [];
    const connection = new Connection((line) => written.push(JSON.parse(line) as Record<string, unknown>), {
      asked: (method, _, signal) => {
        if (method === "no") return null;
        if (method === "fail") return Promise.reject(new Error("broken"));
        return method === "wait" ? new Promise((resolve) => signal.addEventListener("abort", () => resolve("withdrawn"))) : Promise.resolve("yes");
      },
      told: (method, params) => told.push([method, params]),
    });
    for (const [id, method] of ["ask", "no", "fail", "wait"].entries()) connection.receive(`{"jsonrpc":"2.0","id":${id},"method":"${method}"}\n`);
    connection.receive('{"jsonrpc":"2.0","method":"session/update","params":{"a":1}}\n{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}\n');
    connection.notify("session/cancel", {});
    await vi.waitFor(() => expect(written).toHaveLength(5));
    expect(told).toEqual([["session/update", { a: 1 }]]);
    const of = (id: number) => written.find((message) => message.id === id);
    expect([of(0)?.result, (of(1)?.error as { code: number }).code, (of(2)?.error as { code: number }).code, of(3)?.result]).toEqual(["yes", -32601, -32603, "withdrawn"]);
    expect(written).toContainEqual({ jsonrpc: "2.0", method: "session/cancel", params: {} });
  });

  it("without a client refuses requests of the program and ignores its notifications", () => {
    const { connection, written } = connect();
    connection.receive('{"jsonrpc":"2.0","method":"session/update","params":{}}\n{"jsonrpc":"2.0","id":"x","method":"fs/read"}\n[1]\n');
    expect(written).toEqual([{ jsonrpc: "2.0", id: "x", error: { code: -32601, message: "there is no method fs/read" } }]);
  });
});
