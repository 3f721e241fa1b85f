// Compiles only if the stub invents no member of the app's classes: each of its members is one of npm `obsidian`, or is
// named here as being for tests.

import type * as real from "obsidian";
import type * as stub from "./obsidian";

type Invented<Stub, Real, ForTests extends keyof Stub = never> = Exclude<keyof Stub, keyof Real | ForTests>;
type None<Members extends never> = Members;

export type Checked = [
  None<Invented<stub.Component, real.Component>>,
  None<Invented<stub.Vault, real.Vault, "refresh">>,
  None<Invented<stub.FileSystemAdapter, real.FileSystemAdapter>>,
  None<Invented<stub.Workspace, real.Workspace, "leaves" | "layout" | "opened" | "inserted" | "saved" | "active" | "editorLeaf" | "sidebarEl" | "openFile">>,
  None<Invented<stub.WorkspaceLeaf, real.WorkspaceLeaf, "workspace">>,
  None<Invented<stub.ItemView, real.ItemView & { onOpen: unknown; onClose: unknown }>>,
  None<Invented<stub.MarkdownView, real.MarkdownView & { onOpen: unknown; onClose: unknown }, "onSave" | "text" | "selected">>,
  None<Invented<stub.Editor, real.Editor, "steps" | "isFocused">>,
  None<Invented<stub.App, real.App, "commands">>,
  None<Invented<stub.Plugin, real.Plugin, "tabs" | "data">>,
  None<Invented<stub.PluginSettingTab, real.PluginSettingTab, "plugin">>,
  None<Invented<stub.Setting, real.Setting>>,
  None<Invented<stub.Modal, real.Modal>>,
  None<Invented<stub.Notice, real.Notice>>,
  None<Invented<stub.TFile, real.TFile>>,
  None<Invented<stub.MetadataCache, real.MetadataCache>>,
  None<Invented<stub.FileManager, real.FileManager>>,
  None<Invented<typeof stub.Keymap, typeof real.Keymap>>,
  None<Invented<typeof stub.MarkdownRenderer, typeof real.MarkdownRenderer>>,
  None<Invented<typeof stub.Platform, typeof real.Platform>>,
];
