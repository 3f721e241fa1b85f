import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { candidates, expandHome, findProgram, type System } from "../../src/agent/find-program";
import { Agent, announced, NotReady, type AgentState, type Child, type Runtime } from "../../src/agent/process";
import { ConnectionClosed } from "../../src/agent/rpc";
import { PROTOCOL_VERSION } from "../../src/protocol";

const system = (there: string[], more: Partial<System> = {}): System => ({
  platform: "linux",
  env: { PATH: "/usr/bin:/opt/x/" },
  home: "/home/ada",
  isExecutable: (path) => Promise.resolve(there.includes(path)),
  ...more,
});

describe("findProgram", () => {
  it("takes the first of PATH and the folders of installers", async () => {
    expect(await findProgram("", system(["/home/ada/.cargo/bin/vault-agent", "/opt/x/vault-agent"]))).toEqual({ path: "/opt/x/vault-agent" });
    expect(await findProgram("", system(["/home/ada/.cargo/bin/vault-agent"]))).toEqual({ path: "/home/ada/.cargo/bin/vault-agent" });
    const missing = await findProgram("", system([]));
    expect(missing).toMatchObject({ path: null });
    expect(missing).toHaveProperty("looked", candidates(system([])));
  });

  it("takes a path of the settings alone", async () => {
    const there = ["/usr/bin/vault-agent", "/home/ada/bin/va"];
    expect(await findProgram(" ~/bin/va ", system(there))).toEqual({ path: "/home/ada/bin/va" });
    expect(await findProgram("/wrong", system(there))).toEqual({ path: null, looked: ["/wrong"] });
    expect(expandHome("~user/x", "/home/ada")).toBe("~user/x");
  });

  it("knows the names of Windows", () => {
    const windows = system([], { platform: "win32", env: { Path: "C:\\bin;D:\\" }, home: "C:\\Users\\ada" });
    expect(candidates(windows)).toEqual([
      "C:\\bin\\vault-agent.exe",
      "D:\\vault-agent.exe",
      "C:\\Users\\ada\\.cargo\\bin\\vault-agent.exe",
      "C:\\Users\\ada\\.local\\bin\\vault-agent.exe",
      "C:\\Users\\ada\\AppData\\Local\\Programs\\vault-agent\\vault-agent.exe",
      "C:\\Users\\ada\\AppData\\Local\\Microsoft\\WinGet\\Links\\vault-agent.exe",
      "C:\\Users\\ada\\scoop\\shims\\vault-agent.exe",
    ]);
  });
});

/** A program whose answers and end a test decides. */
class Program implements Child {
  lines: string[] = [];
  isEnded = false;
  output: (chunk: string) => void = () => undefined;
  errors: (chunk: string) => void = () => undefined;
  die: (reason: string) => void = () => undefined;

  write(line: string): void {
    this.lines.push(line);
  }

  end(): void {
    this.isEnded = true;
  }

  onOutput(take: (chunk: string) => void): void {
    this.output = take;
  }

  onErrors(take: (chunk: string) => void): void {
    this.errors = take;
  }

  onEnd(take: (reason: string) => void): void {
    this.die = take;
  }

  /** Answers the request that came last. */
  answer(result: unknown): void {
    const { id } = JSON.parse(this.lines[this.lines.length - 1] ?? "") as { id: number };
    this.output(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
  }

  introduce(methods: number | undefined = PROTOCOL_VERSION): void {
    const meta = methods === undefined ? {} : { vault: { version: methods } };
    this.answer({ agentInfo: { version: "1.2.3" }, agentCapabilities: { _meta: meta } });
  }
}

function world(there = ["/usr/bin/vault-agent"]) {
  const programs: Program[] = [];
  const spawned: unknown[][] = [];
  const runtime: Runtime = {
    ...system(there),
    spawn: (...args) => {
      spawned.push(args);
      const program = new Program();
      programs.push(program);
      return Promise.resolve(program);
    },
  };
  const agent = new Agent(runtime, "/vault", () => "");
  const states: string[] = [];
  agent.onState(({ kind }: AgentState) => states.push(kind));
  const last = () => programs[programs.length - 1] as Program;
  /** Lets the start come to the point where the program is asked. */
  const started = async () => {
    const before = programs.length;
    const start = agent.start();
    await vi.waitFor(() => expect(programs.length === before + 1 && last().lines.length === 1).toBe(true));
    return start;
  };
  return { agent, programs, spawned, states, last, started };
}

describe("Agent", () => {
  beforeEach(() => void vi.useFakeTimers({ shouldAdvanceTime: true }));
  afterEach(() => void vi.useRealTimers());

  it("starts the program with the vault and is ready when it is introduced", async () => {
    const { agent, spawned, last, states } = world();
    await expect(agent.request("_vault/vocabulary", {})).rejects.toBeInstanceOf(NotReady);
    const start = agent.start();
    await vi.waitFor(() => expect(last().lines).toHaveLength(1));
    last().introduce();
    await start;
    expect(spawned).toEqual([["/usr/bin/vault-agent", ["acp", "--vault", "/vault"], "/vault"]]);
    expect(agent.state).toEqual({ kind: "ready", program: "/usr/bin/vault-agent", version: "1.2.3" });
    expect(states).toEqual(["starting", "ready"]);
    const asked = agent.request("_vault/vocabulary", {});
    last().answer({ tags: [] });
    expect(await asked).toEqual({ tags: [] });
  });

  it.each([
    [undefined, "too-old"],
    [PROTOCOL_VERSION + 1, "too-new"],
  ])("refuses version %s of the methods", async (version, kind) => {
    const { agent, last } = world();
    const start = agent.start();
    await vi.waitFor(() => expect(last().lines).toHaveLength(1));
    if (version === undefined) last().answer({ agentInfo: { version: "0.0.1" }, agentCapabilities: {} });
    else last().introduce(version);
    await start;
    expect(agent.state.kind).toBe(kind);
    expect(last().isEnded).toBe(true);
  });

  it("says where it looked for a program that is missing", async () => {
    const { agent } = world([]);
    await agent.start();
    expect(agent.state).toMatchObject({ kind: "missing" });
  });

  it("starts the program again when it ends, and gives up after several failures", async () => {
    const { agent, programs, last } = world();
    const start = agent.start();
    await vi.waitFor(() => expect(last().lines).toHaveLength(1));
    last().introduce();
    await start;
    const asked = agent.request("_vault/vocabulary", {});
    last().die("SIGKILL");
    await expect(asked).rejects.toBeInstanceOf(ConnectionClosed);
    expect(agent.state.kind).toBe("restarting");
    for (const pause of [200, 1_000, 4_000, 10_000]) {
      const before = programs.length;
      await vi.advanceTimersByTimeAsync(pause);
      expect(programs).toHaveLength(before + 1);
      last().errors("no such file\n");
      last().die("exit code 2");
    }
    expect(agent.state).toEqual({ kind: "failed", message: "no such file" });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(programs).toHaveLength(5);
  });

  it("does not start again when it was stopped", async () => {
    const { agent, programs, last, started } = world();
    void started();
    await vi.waitFor(() => expect(programs).toHaveLength(1));
    agent.stop();
    expect(last().isEnded).toBe(true);
    last().die("exit code 0");
    await vi.advanceTimersByTimeAsync(60_000);
    expect([agent.state.kind, programs.length]).toEqual(["stopped", 1]);
  });
});

it("reads versions from whatever a program answers", () => {
  expect(announced(null)).toEqual({ version: "unknown", methods: 0 });
  expect(announced({ agentInfo: null, agentCapabilities: { _meta: { vault: { version: "1" } } } })).toEqual({ version: "unknown", methods: 0 });
});
