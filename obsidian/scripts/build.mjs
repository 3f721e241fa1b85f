// Bundles src/main.ts into main.js, the one file that the app loads.
import { build } from "esbuild";
import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";

const file = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** The largest main.js, in bytes. */
const LARGEST = 300_000;

await build({
  entryPoints: [file("src/main.ts")],
  outfile: file("main.js"),
  bundle: true,
  format: "cjs",
  platform: "node",
  target: "es2022",
  // The app provides these.
  external: ["obsidian", "@codemirror/*", "electron"],
  // The app's window resolves Node's modules by `require` only.
  supported: { "dynamic-import": false },
  minify: true,
  legalComments: "none",
  logLevel: "warning",
});
const { size } = statSync(file("main.js"));
console.log(`main.js: ${size} bytes`);
if (size > LARGEST) throw new Error(`main.js is larger than ${LARGEST} bytes`);
