// JSON-RPC 2.0 over lines: requests to the program and from it, each answered once, in any order.

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

/** Answers what the program asks, and hears what it tells. */
export interface Client {
  /** Answers a request, or is null for a method that it does not have. `signal` is aborted when the program withdraws it. */
  asked(method: string, params: unknown, signal: AbortSignal): Promise<unknown> | null;
  told(method: string, params: unknown): void;
}

const METHOD_NOT_FOUND = -32601;
const INTERNAL_ERROR = -32603;

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
  /** The program's requests under way, by their ids as JSON. */
  private readonly answering = new Map<string, AbortController>();

  constructor(
    private readonly write: (line: string) => void,
    private readonly client: Client | null = null,
  ) {}

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
      if (message.id === undefined) this.told(message.method, message.params);
      else this.asked(message.id, message.method, message.params);
      return;
    }
    const id = typeof message.id === "number" ? message.id : -1;
    const waiting = this.waiting.get(id);
    if (waiting === undefined) return;
    this.waiting.delete(id);
    if (message.error === undefined) waiting.resolve(message.result);
    else waiting.reject(errorOf(message.error));
  }

  private told(method: string, params: unknown): void {
    if (method === "$/cancel_request") this.answering.get(JSON.stringify(isRecord(params) ? params.requestId : null))?.abort();
    else this.client?.told(method, params);
  }

  private asked(id: unknown, method: string, params: unknown): void {
    const withdrawn = new AbortController();
    const answer = this.client?.asked(method, params, withdrawn.signal) ?? null;
    if (answer === null) return this.send({ id, error: { code: METHOD_NOT_FOUND, message: `there is no method ${method}` } });
    const key = JSON.stringify(id);
    this.answering.set(key, withdrawn);
    const answered = (message: Record<string, unknown>) => {
      this.answering.delete(key);
      if (this.closed === null) this.send({ id, ...message });
    };
    answer.then(
      (result) => answered({ result }),
      (error: unknown) => answered({ error: { code: INTERNAL_ERROR, message: String(error) } }),
    );
  }

  /** Tells the program something. */
  notify(method: string, params: unknown): void {
    if (this.closed === null) this.send({ method, params });
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

  /** Rejects all requests, those that are under way and later ones, and withdraws those of the program. */
  close(reason: Error): void {
    if (this.closed !== null) return;
    this.closed = reason;
    for (const withdrawn of this.answering.values()) withdrawn.abort();
    this.answering.clear();
    const all = [...this.waiting.values()];
    this.waiting.clear();
    for (const waiting of all) waiting.reject(reason);
  }
}
