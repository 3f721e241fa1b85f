// The program as a child process: started, introduced, restarted when it ends, and ended with the plugin.

import { HOST_VERSION, PROTOCOL_VERSION, type VaultMethods } from "../protocol";
import { capabilities, type AcpMethods } from "./acp";
import { findProgram, type System } from "./find-program";
import { Connection, ConnectionClosed, type Client } from "./rpc";

/** A running process. */
export interface Child {
  write(line: string): void;
  /** Closes its input, so that it ends by itself; ends it if it does not. */
  end(): void;
  onOutput(take: (chunk: string) => void): void;
  onErrors(take: (chunk: string) => void): void;
  /** Called once, with the reason. */
  onEnd(take: (reason: string) => void): void;
}

/** The parts of the system that the agent needs. Tests give another one. */
export interface Runtime extends System {
  spawn(program: string, args: string[], folder: string): Promise<Child>;
}

export type AgentState =
  | { kind: "starting" }
  | { kind: "ready"; program: string; version: string }
  | { kind: "missing"; looked: string[] }
  | { kind: "too-old"; program: string; version: string }
  | { kind: "too-new"; program: string; version: string }
  | { kind: "restarting" }
  | { kind: "failed"; message: string }
  | { kind: "stopped" };

/** Milliseconds before each restart. After the last one the person is asked. */
const PAUSES = [200, 1_000, 4_000, 10_000];

/** A program that ran so long was sound: its next failure is counted as the first. */
const SOUND_MS = 60_000;

/** How long the program may take to introduce itself. */
const HELLO_MS = 20_000;

/** Characters of the program's last errors that are shown. */
const LAST_ERRORS = 2_000;

/** The program is not there to answer; the state says why. */
export class NotReady extends Error {
  override readonly name = "NotReady";
}

export class Agent {
  private current: AgentState = { kind: "stopped" };
  private readonly listeners = new Set<(state: AgentState) => void>();
  private connection: Connection | null = null;
  private child: Child | null = null;
  private failures = 0;
  private errors = "";
  private timer: number | null = null;
  /** The conversations, which answer what the program asks. */
  client: Client | null = null;
  /** The app, which answers for its editor and its commands. */
  host: Pick<Client, "asked"> | null = null;
  /** Grows with each start, so that what an earlier start still does is ignored. */
  private generation = 0;

  constructor(
    private readonly runtime: Runtime,
    readonly vault: string,
    private readonly programSetting: () => string,
  ) {}

  get state(): AgentState {
    return this.current;
  }

  /** Calls back with each new state, and returns the end of that. */
  onState(listener: (state: AgentState) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private become(state: AgentState): void {
    this.current = state;
    for (const listener of [...this.listeners]) listener(state);
  }

  /** Starts the program. If it runs, it is ended first. */
  async start(): Promise<void> {
    this.failures = 0;
    await this.run();
  }

  private async run(): Promise<void> {
    this.release();
    const generation = ++this.generation;
    const isCurrent = () => generation === this.generation;
    this.errors = "";
    this.become({ kind: "starting" });
    const found = await findProgram(this.programSetting(), this.runtime);
    if (!isCurrent()) return;
    if (found.path === null) return this.become({ kind: "missing", looked: found.looked });
    let child: Child;
    try {
      child = await this.runtime.spawn(found.path, ["acp", "--vault", this.vault], this.vault);
    } catch (error) {
      if (isCurrent()) this.become({ kind: "failed", message: String(error) });
      return;
    }
    if (!isCurrent()) return child.end();
    const connection = new Connection((line) => child.write(line), {
      asked: (method, params, signal) => (isCurrent() ? (this.host?.asked(method, params, signal) ?? this.client?.asked(method, params, signal) ?? null) : null),
      told: (method, params) => {
        if (isCurrent()) this.client?.told(method, params);
      },
    });
    this.child = child;
    this.connection = connection;
    const started = Date.now();
    child.onOutput((chunk) => connection.receive(chunk));
    child.onErrors((chunk) => {
      this.errors = (this.errors + chunk).slice(-LAST_ERRORS);
    });
    child.onEnd((reason) => {
      connection.close(new ConnectionClosed(`vault-agent has ended (${reason})`));
      if (isCurrent()) this.ended(reason, Date.now() - started);
    });
    await this.introduce(connection, found.path, isCurrent);
  }

  private async introduce(connection: Connection, program: string, isCurrent: () => boolean): Promise<void> {
    const tooLong = new AbortController();
    const timer = window.setTimeout(() => tooLong.abort(), HELLO_MS);
    try {
      const host = this.host === null ? null : { version: HOST_VERSION, vault: this.vault };
      const hello = { protocolVersion: 1, clientCapabilities: capabilities(host), clientInfo: { name: "vault-agent-plugin", version: "0.1.0" } };
      const { version, methods } = announced(await connection.request("initialize", hello, tooLong.signal));
      if (!isCurrent()) return;
      if (methods === PROTOCOL_VERSION) return this.become({ kind: "ready", program, version });
      this.stopChild();
      this.become({ kind: methods > PROTOCOL_VERSION ? "too-new" : "too-old", program, version });
    } catch (error) {
      // The end of the process has its own state.
      if (!isCurrent() || error instanceof ConnectionClosed) return;
      this.stopChild();
      this.become({ kind: "failed", message: `${program} does not answer as vault-agent does: ${String(error)}` });
    } finally {
      window.clearTimeout(timer);
    }
  }

  private ended(reason: string, ranFor: number): void {
    this.connection = null;
    this.child = null;
    if (ranFor > SOUND_MS) this.failures = 0;
    const pause = PAUSES[this.failures++];
    if (pause === undefined) {
      const errors = this.errors.trim();
      return this.become({ kind: "failed", message: errors === "" ? `It ended: ${reason}` : errors });
    }
    this.become({ kind: "restarting" });
    this.timer = window.setTimeout(() => void this.run(), pause);
  }

  /** Ends the program for good. */
  stop(): void {
    this.generation++;
    this.release();
    this.become({ kind: "stopped" });
  }

  private release(): void {
    if (this.timer !== null) window.clearTimeout(this.timer);
    this.timer = null;
    this.stopChild();
  }

  private stopChild(): void {
    this.generation++;
    this.connection?.close(new ConnectionClosed("vault-agent was stopped"));
    this.child?.end();
    this.connection = null;
    this.child = null;
  }

  /** Calls a method of the program, which must be ready. */
  async request<Method extends keyof VaultMethods>(
    method: Method,
    params: VaultMethods[Method]["params"],
    signal?: AbortSignal,
  ): Promise<VaultMethods[Method]["result"]> {
    if (this.connection === null || this.current.kind !== "ready") throw new NotReady("vault-agent is not running");
    // The types of both sides are generated from one schema, and the version was compared.
    return (await this.connection.request(method, params, signal)) as VaultMethods[Method]["result"];
  }

  /** Calls a method of the protocol for conversations. */
  async call<Method extends keyof AcpMethods>(method: Method, params: AcpMethods[Method]["params"], signal?: AbortSignal): Promise<AcpMethods[Method]["result"]> {
    if (this.connection === null || this.current.kind !== "ready") throw new NotReady("vault-agent is not running");
    return (await this.connection.request(method, params, signal));
  }

  /** Stops the turn of a session. */
  cancelTurn(sessionId: string): void {
    this.connection?.notify("session/cancel", { sessionId });
  }
}

/** The versions in the answer to `initialize`: of the program, and of its methods for vaults; 0 if it has none. */
export function announced(hello: unknown): { version: string; methods: number } {
  const answer = hello as {
    agentInfo?: { version?: unknown } | null;
    agentCapabilities?: { _meta?: { vault?: { version?: unknown } | null } | null } | null;
  } | null;
  const version = answer?.agentInfo?.version;
  const methods = answer?.agentCapabilities?._meta?.vault?.version;
  return {
    version: typeof version === "string" ? version : "unknown",
    methods: typeof methods === "number" ? methods : 0,
  };
}
