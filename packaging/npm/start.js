// Starts the program of this platform, from its optional package, under the name of a command.
"use strict";
const { spawn } = require("node:child_process");
const os = require("node:os");

module.exports = (name) => {
  const platform = `vault-agent-${process.platform}-${process.arch}`;
  const suffix = process.platform === "win32" ? ".exe" : "";
  let program;
  try {
    program = require.resolve(`${platform}/bin/vault-agent${suffix}`);
  } catch {
    console.error(
      `error: the package ${platform} is not installed. If this system is supported, install again without ` +
        "--omit=optional; else build the program with cargo.",
    );
    process.exit(2);
  }
  const names = name === "vault-agent" ? [] : ["--started-as", name];
  const child = spawn(program, [...names, ...process.argv.slice(2)], { stdio: "inherit" });
  // A terminal sends Ctrl-C to both, and the program decides how to handle it. Other signals come to this process alone.
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    console.error(`error: ${program} cannot be started: ${error.message}`);
    process.exit(2);
  });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + os.constants.signals[signal]));
};
