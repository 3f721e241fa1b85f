import { defineConfig, globalIgnores } from "eslint/config";
import obsidianmd from "eslint-plugin-obsidianmd";

export default defineConfig([
  // Files that are not part of the plugin run in Node or stand for the app.
  globalIgnores(["main.js", "node_modules", "package-lock.json", "*.config.mjs", "scripts", "tests/browser", "tests/stub"]),
  ...obsidianmd.configs.recommended,
  {
    languageOptions: {
      parserOptions: {
        projectService: true,
      },
    },
    rules: {
      // The declarative settings need version 1.13 of the app; this plugin works from 1.8.7 on.
      "obsidianmd/settings-tab/prefer-setting-definitions": "off",
    },
  },
]);
