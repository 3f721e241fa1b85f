// JSON-RPC 2.0 over lines: requests to the program, each answered once, in any order.

/** An error that the program answered with. */
export class RpcError extends Error {
  override readonly name = "RpcError";

  constructor(
    message: string,
    readonly code: number,
    /** The kind of a vault's error, for example `CONFLICT`. */
    readonly kind: string | null,
    /** A remedy for the person. */
    readonly remedy: string | null,
  ) {
    super(message);
  }
}

/** The program ended before it answered. */
export class ConnectionClosed extends Error {
  override readonly name = "ConnectionClosed";
}

/** The request was given up by the caller. */
export class Cancelled extends Error {
  override readonly name = "Cancelled";

  constructor() {
    super("cancelled");
  }
}

interface Waiting {
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
}

const METHOD_NOT_FOUND = -32601;

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function errorOf(value: unknown): RpcError {
  const error = isRecord(value) ? value : {};
  const data = isRecord(error.data) ? error.data : {};
  const message = textOf(data.message) ?? textOf(error.message) ?? "the program failed and did not say why";
  const code = typeof error.code === "number" ? error.code : 0;
  return new RpcError(message, code, textOf(data.code), textOf(data.remedy));
}

/** One connection to the program. After `close` every request is rejected. */
export class Connection {
  private last = 0;
  private rest = "";
  private closed: Error | null = null;
  private readonly waiting = new Map<number, Waiting>();

  constructor(private readonly write: (line: string) => void) {}

  /** Takes a piece of the program's output. Lines that are no messages are ignored. */
  receive(chunk: string): void {
    const lines = (this.rest + chunk).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.trim() !== "") this.take(line);
    }
  }

  private take(line: string): void {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      return;
    }
    if (!isRecord(message)) return;
    if (typeof message.method === "string") {
      // The program asks something that this plugin cannot answer; notifications need no answer.
      if (message.id !== undefined) {
        const error = { code: METHOD_NOT_FOUND, message: `there is no method ${message.method}` };
        this.send({ id: message.id, error });
      }
      return;
    }
    const id = typeof message.id === "number" ? message.id : -1;
    const waiting = this.waiting.get(id);
    if (waiting === undefined) return;
    this.waiting.delete(id);
    if (message.error === undefined) waiting.resolve(message.result);
    else waiting.reject(errorOf(message.error));
  }

  private send(message: Record<string, unknown>): void {
    this.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  /** Sends a request. An aborted one is cancelled in the program, and rejected at once. */
  request(method: string, params: unknown, signal?: AbortSignal): Promise<unknown> {
    if (this.closed !== null) return Promise.reject(this.closed);
    if (signal?.aborted === true) return Promise.reject(new Cancelled());
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      const abort = () => {
        if (!this.waiting.delete(id)) return;
        this.send({ method: "$/cancel_request", params: { requestId: id } });
        reject(new Cancelled());
      };
      const settled = () => signal?.removeEventListener("abort", abort);
      this.waiting.set(id, {
        resolve: (result) => {
          settled();
          resolve(result);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      });
      signal?.addEventListener("abort", abort, { once: true });
      this.send({ id, method, params });
    });
  }

  /** Rejects all requests, those that are under way and later ones. */
  close(reason: Error): void {
    if (this.closed !== null) return;
    this.closed = reason;
    const all = [...this.waiting.values()];
    this.waiting.clear();
    for (const waiting of all) waiting.reject(reason);
  }
}
