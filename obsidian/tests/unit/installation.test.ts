import { describe, expect, it } from "vitest";
import { installation } from "../../src/views/agent-view";

describe("installation", () => {
  it("builds from the source code until there is a release", () => {
    for (const isWindows of [false, true]) expect(installation(isWindows)[1]).toBe("cargo install --locked --path crates/vault-agent");
  });

  it("takes the installer of the system from the release", () => {
    const repository = "https://github.com/example/notes";
    expect(installation(false, repository)).toEqual(["", `curl -fsSL ${repository}/releases/latest/download/install.sh | sh`]);
    expect(installation(true, repository)).toEqual(["with PowerShell", `irm ${repository}/releases/latest/download/install.ps1 | iex`]);
  });
});
