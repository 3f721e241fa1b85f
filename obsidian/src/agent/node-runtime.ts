// The system that the desktop app runs on. Node's modules are loaded here only, and only on the desktop.

import { Platform } from "obsidian";
import type { Child, Runtime } from "./process";

/** How long the program may take to end by itself. */
const END_MS = 2_000;

/** Makes the runtime of the desktop app. */
export async function nodeRuntime(): Promise<Runtime> {
  if (!Platform.isDesktopApp) throw new Error("This plugin works in the desktop app only");
  const [{ spawn }, { access, constants }, { homedir }] = await Promise.all([
    import("child_process"),
    import("fs/promises"),
    import("os"),
  ]);
  return {
    platform: process.platform,
    env: process.env,
    home: homedir(),
    isExecutable: (path) => access(path, constants.X_OK).then(() => true, () => false),
    spawn: (program, args, folder) =>
      new Promise<Child>((resolve, reject) => {
        const child = spawn(program, args, { cwd: folder, stdio: ["pipe", "pipe", "pipe"], windowsHide: true });
        child.stdout.setEncoding("utf8");
        child.stderr.setEncoding("utf8");
        // A process that has ended takes no more input; its end is reported by `close`.
        child.stdin.on("error", () => undefined);
        child.once("error", reject);
        child.once("spawn", () =>
          resolve({
            write: (line) => void child.stdin.write(line),
            end: () => {
              child.stdin.end();
              const timer = window.setTimeout(() => child.kill(), END_MS);
              child.once("close", () => window.clearTimeout(timer));
            },
            onOutput: (take) => void child.stdout.on("data", take),
            onErrors: (take) => void child.stderr.on("data", take),
            onEnd: (take) => void child.once("close", (code, signal) => take(signal ?? `exit code ${code ?? "unknown"}`)),
          }),
        );
      }),
  };
}
