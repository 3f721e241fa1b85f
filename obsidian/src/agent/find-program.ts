// Where the program is: the path from the settings, else the folders of PATH and those that installers use.

/** The parts of the system that the search needs. */
export interface System {
  platform: string;
  env: Record<string, string | undefined>;
  home: string;
  /** Whether a file is there and can be run. */
  isExecutable(path: string): Promise<boolean>;
}

/** The program, or the places where it was looked for. */
export type Found = { path: string } | { path: null; looked: string[] };

const PROGRAM = "vault-agent";

/**
 * Apps that are started from a desktop often have a short PATH, and a running app does not see a changed one, so these
 * folders are searched as well.
 */
const ALSO = [".cargo/bin", ".local/bin"];
/** Where install.ps1, winget and scoop install programs. */
const ALSO_ON_WINDOWS = ["AppData/Local/Programs/vault-agent", "AppData/Local/Microsoft/WinGet/Links", "scoop/shims"];
const ALSO_ABSOLUTE = ["/usr/local/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/usr/bin"];

/** All paths where the program can be, in the order of preference. */
export function candidates(system: System): string[] {
  const isWindows = system.platform === "win32";
  const [slash, separator, name] = isWindows ? ["\\", ";", `${PROGRAM}.exe`] : ["/", ":", PROGRAM];
  const folders = (system.env.PATH ?? system.env.Path ?? "").split(separator).filter((folder) => folder !== "");
  const below = isWindows ? [...ALSO, ...ALSO_ON_WINDOWS] : ALSO;
  folders.push(...below.map((folder) => `${system.home}${slash}${folder.replaceAll("/", slash)}`));
  if (!isWindows) folders.push(...ALSO_ABSOLUTE);
  const files = folders.map((folder) => `${folder.endsWith(slash) ? folder.slice(0, -1) : folder}${slash}${name}`);
  return [...new Set(files)];
}

/** `~/x` as a path below the home folder. */
export function expandHome(path: string, home: string): string {
  return /^~[/\\]/.test(path) ? `${home}${path.slice(1)}` : path;
}

/** Finds the program. A path in the settings is used alone, so that a wrong one is noticed. */
export async function findProgram(setting: string, system: System): Promise<Found> {
  const chosen = expandHome(setting.trim(), system.home);
  const looked = chosen === "" ? candidates(system) : [chosen];
  for (const path of looked) {
    if (await system.isExecutable(path)) return { path };
  }
  return { path: null, looked };
}
