// Generated from protocol.schema.json by `npm run types`. Do not edit.

/** The version of the methods that this plugin speaks. */
export const PROTOCOL_VERSION = 1;

/** The version of the requests to a live host that this plugin answers. */
export const HOST_VERSION = 1;

/** A search. */
export interface SearchRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
  /** Words and operators, for example `compost tag:garden -draft`. */
  query: string;
  /** How passages are ranked. */
  ranking?: Ranking;
  /** The most notes to return, 1 to 200; 20 by default. */
  limit?: number | null;
}

/** How passages are ranked. */
export type Ranking = "words" | "meaning";

/** The notes that a search found. */
export interface SearchResult {
  /** The notes, best first. */
  hits: Array<SearchHit>;
  /** How they were ranked. */
  ranking: Ranking;
  /** The parts of the index that are missing from the result. */
  coverage: Coverage;
  /** Misspelled words, and the words that were searched for instead. */
  substitutions: Array<Substitution>;
  /** Words of the query that look like operators but are not. They are searched for as words. */
  unknownOperators: Array<string>;
  /** If nothing was found: the notes that came closest. */
  nearMisses: Array<NoteName>;
  /** Milliseconds that the program needed. */
  tookMs: number;
}

/** A note that a search found. */
export interface SearchHit {
  /** The path. */
  path: string;
  /** The title. */
  title: string;
  /** The headings above the line, outermost first. */
  headings: Array<string>;
  /** The line to open, from 1. */
  line: number;
  /** The first line of the passage. */
  startLine: number;
  /** 0 to 1. */
  score: number;
  /** Whether the match is weak. */
  isWeak: boolean;
  /** The part of the passage that matches best, without markup. */
  excerpt: Array<Segment>;
  /** The whole passage, as it is written. */
  passage: Array<Segment>;
  /** The note's tags, without `#`. */
  tags: Array<string>;
  /** When the file was last changed, as RFC 3339. */
  modified: string;
}

/** A piece of a text. The pieces, joined, are the text. */
export interface Segment {
  /** The text. */
  text: string;
  /** Whether it matched and is to be highlighted. */
  isMatch: boolean;
}

/** How much of the vault the index has at the moment. */
export interface Coverage {
  /** Notes in the index. */
  notes: number;
  /** Notes that are not read yet and so cannot be found. */
  unread: number;
  /** Passages in the index. */
  passages: number;
  /** Passages that are found by their words only, since they have no embedding yet. */
  pending: number;
  /** False if another process is updating the index, so that the newest changes can be missing. */
  isCurrent: boolean;
}

/** A word that no note has, and what was searched for instead. */
export interface Substitution {
  /** The word of the query. */
  word: string;
  /** The words that were searched for. */
  readAs: Array<string>;
}

/** A note by path and title. */
export interface NoteName {
  /** The path. */
  path: string;
  /** The title. */
  title: string;
}

/** Notes about the same as a note. */
export interface RelatedRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
  /** The note. */
  path: string;
  /** The most notes to return, 1 to 200; 20 by default. */
  limit?: number | null;
}

/** Notes about the same as a note. */
export interface RelatedResult {
  /** The notes, the nearest first. */
  notes: Array<RelatedNote>;
  /** The parts of the index that are missing from the result. */
  coverage: Coverage;
}

/** A note about the same as another one. */
export interface RelatedNote {
  /** The path. */
  path: string;
  /** The title. */
  title: string;
  /** The line of the nearest passage, from 1. */
  line: number;
  /** 0 to 1. */
  score: number;
  /** The beginning of the nearest passage. */
  excerpt: Array<Segment>;
  /** Whether a link leads from one of the two notes to the other. */
  isLinked: boolean;
}

/** The links that are missing around a note. */
export interface MentionsRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
  /** The note. */
  path: string;
  /** The most entries of each list to return, 1 to 200; 20 by default. */
  limit?: number | null;
}

/** The links that are missing around a note. */
export interface MentionsResult {
  /** Where other notes name this note without a link. */
  mentions: Array<MissingLink>;
  /** How many there are in all. */
  mentionsInAll: number;
  /** Links that this note could have. */
  suggestions: Array<MissingLink>;
  /** How many there are in all. */
  suggestionsInAll: number;
}

/** A link that could be made. */
export interface MissingLink {
  /** The link, to be sent with `_vault/prepare`. */
  link: NewLink;
  /** The title of the note that the link leads to. */
  targetTitle: string;
  /** The sentence or line, with the words that become the link marked. */
  sentence: Array<Segment>;
  /** Why the link is suggested. */
  reason: LinkReason;
}

/** A link to be made. */
export interface NewLink {
  /** The note that gets the link. */
  path: string;
  /** Its line, from 1. */
  line: number;
  /** The words that become the link. Without them, the link is added at the end of the line. */
  text?: string | null;
  /** The path of the note that the link leads to. */
  target: string;
}

/** Why a link is suggested. */
export type LinkReason = "name" | "link-text" | "meaning";

/** A vault, for requests that have no other parameters. */
export interface VaultRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
}

/** The completions for a query. */
export interface VocabularyResult {
  /** The operators of the query syntax. */
  operators: Array<Operator>;
  /** The tags of the vault, without `#`, the most used first. */
  tags: Array<Tag>;
  /** The names of the properties of all notes. */
  properties: Array<string>;
}

/** An operator of the query syntax. */
export interface Operator {
  /** The text to insert, for example `tag:`. */
  insert: string;
  /** The effect, in words for a person. */
  description: string;
  /** The names that can follow it. */
  completes: Completes;
}

/** The names that can follow an operator. */
export type Completes = "tags" | "folders" | "notes" | "properties" | "nothing";

/** A tag, and how many notes have it. */
export interface Tag {
  /** The tag, without `#`. */
  name: string;
  /** How many notes have it or a tag below it. */
  notes: number;
}

/** A part of the list of changes. */
export interface TransactionsRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
  /** Only transactions before this one. */
  before?: number | null;
  /** The most transactions to return, 1 to 200; 20 by default. */
  limit?: number | null;
}

/** A part of the list of changes. */
export interface TransactionsResult {
  /** The transactions, newest first. */
  transactions: Array<PastTransaction>;
  /** Whether there are older ones. */
  hasMore: boolean;
  /** Warnings about the journal, for example that it is damaged. */
  warnings: Array<string>;
}

/** A change that was made, by whatever program: an assistant, a plan, the command line, the plugin. */
export interface PastTransaction {
  /** Its number. */
  transaction: number;
  /** When it began, as RFC 3339. */
  time: string;
  /** The tool, or the goal of the plan. */
  label: string;
  /** The effect, in words for a person. */
  kind: PastKind;
  /** The transaction that it undid or redid. */
  of?: number | null;
  /** Its present status. */
  status: PastStatus;
  /** The first of the files and folders that it touched. */
  paths: Array<string>;
  /** How many files and folders it touched. */
  pathsInAll: number;
}

/** The kind of a transaction. */
export type PastKind = "change" | "undo" | "redo";

/** The present status of a transaction. */
export type PastStatus = "done" | "undone" | "rolled-back" | "interrupted" | "damaged";

/** One change that was made. */
export interface TransactionRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
  /** Its number. */
  transaction: number;
}

/** The files of a change. */
export interface TransactionResult {
  /** Files and moved folders, by path. */
  files: Array<FileChange>;
  /** Folders that were made or removed. */
  folders: Array<FolderChange>;
  /** Notices for the person, for example that a text is no longer known. */
  notices: Array<string>;
}

/** The change of a file. */
export interface FileChange {
  /** The kind of the change. */
  kind: FileChangeKind;
  /** The path before; of a new file, its path after. */
  path: string;
  /** The path after, if it changes. */
  to?: string | null;
  /** The change of its text as a unified diff. */
  diff?: string | null;
  /** How many lines are added. */
  added: number;
  /** How many lines are removed. */
  removed: number;
  /** Of a folder that moves: the files in it. */
  inside: Array<string>;
}

/** The kind of the change of a file or folder. */
export type FileChangeKind = "created" | "modified" | "renamed" | "deleted";

/** The change of a folder. */
export interface FolderChange {
  /** Created or deleted. */
  kind: FileChangeKind;
  /** The folder. */
  path: string;
}

/** A change to be shown before it is made. */
export interface PrepareRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
  /** The change. */
  change: WantedChange;
}

/** A change that a person wants. */
export type WantedChange = {
  kind: "rename";
  /** The present path. */
  path: string;
  /** The new path, with the extension. */
  newPath: string;
} | {
  kind: "links";
  /** The links. */
  links: Array<NewLink>;
} | {
  kind: "undo";
  /** Its number; by default the newest that can be undone. */
  transaction?: number | null;
} | {
  kind: "redo";
  /** The number of the transaction that was undone; by default the one that was undone last. */
  transaction?: number | null;
} | {
  kind: "macro";
  /** Its name. */
  name: string;
  /** The values of its parameters, by their names. */
  parameters: Record<string, string>;
};

/** A change that a person approves by its digest. Nothing is done yet. */
export interface PrepareResult {
  /** To be sent with `_vault/apply`: it stands for exactly this change. */
  digest: string;
  /** Files and moved folders, by path. */
  files: Array<FileChange>;
  /** Folders that are made or removed. */
  folders: Array<FolderChange>;
  /** Notices for the person. */
  notices: Array<string>;
  /** How many notes are created, changed, moved or deleted. */
  notes: number;
  /** How many links of existing notes change. */
  links: number;
  /** Why the settings of the vault deny the change; if set, `_vault/apply` refuses it. */
  denied?: string | null;
}

/** The approval of a change that was shown. */
export interface ApplyRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
  /** The change, as it was sent with `_vault/prepare`. */
  change: WantedChange;
  /** The digest of the change that the person saw. If the change would be another one by now, nothing is done and the error has the kind `CONFLICT`. */
  digest: string;
}

/** A change that was made. */
export interface ApplyResult {
  /** The transaction in the journal, for undo. */
  transaction?: number | null;
  /** Notices for the person. */
  notices: Array<string>;
}

/** The state of a vault's index. */
export interface IndexStateResult {
  /** The version of the program. */
  version: string;
  /** The vault's folder. */
  vault: string;
  /** The index; none if the vault was not indexed yet. */
  index?: IndexState | null;
}

/** The state of an index. */
export interface IndexState {
  /** The index file. It lies outside of the vault. */
  file: string;
  /** Its size. */
  bytes: number;
  /** The embedding model. */
  model: string;
  /** Notes in the index. */
  notes: number;
  /** Notes that are not read yet. */
  unread: number;
  /** Passages in the index. */
  passages: number;
  /** Passages that have no embedding yet. */
  pending: number;
  /** When the index was last equal to the notes, as RFC 3339. */
  lastSync?: string | null;
  /** Notes that cannot be indexed, each with the reason. */
  skipped: Array<SkippedNote>;
  /** Advice, for example that another model fits the language better. */
  advice: Array<string>;
}

/** A note that cannot be indexed. */
export interface SkippedNote {
  /** The path. */
  path: string;
  /** Why. */
  reason: string;
}

/** The macros of a vault. */
export interface MacrosResult {
  /** Saved ones first. */
  macros: Array<NamedMacro>;
}

/** A macro, without its plan. */
export interface NamedMacro {
  /** Its name. */
  name: string;
  /** Its purpose. */
  description: string;
  /** Whether it comes with the program. */
  isShipped: boolean;
  /** The values that it needs. */
  parameters: Array<MacroParameter>;
}

/** A value that a macro needs. */
export interface MacroParameter {
  /** Its name. */
  name: string;
  /** The kind of its value. */
  kind: MacroParameterKind;
  /** Its value if none is given. */
  default?: string | null;
}

/** The kind of a parameter's value. */
export type MacroParameterKind = "selection" | "file" | "folder" | "text";

/** A plan to save as a macro. */
export interface SaveMacroRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
  /** The name of the macro. */
  name: string;
  /** The transaction that the plan made. */
  transaction: number;
}

/** The model of conversations, and what may be done in them. */
export interface ModelStateResult {
  /** The provider, by name or address; none if no model is chosen. */
  provider?: string | null;
  /** The model, by the provider's name for it. */
  model?: string | null;
  /** The models that may be chosen; empty if all may. */
  allowedModels: Array<string>;
  /** The host that notes are sent to; none if they stay on this machine or no model is chosen. */
  host?: string | null;
  /** Where the key of the provider is from, for example a variable or the keyring. */
  key?: string | null;
  /** The reason for which no conversation can begin. */
  problem?: string | null;
  /** The file with these settings. */
  file: string;
  /** Settings that a variable or a flag sets, so that the file has no effect on them: `provider`, `model`. */
  fixed: Array<string>;
  /** The providers that have a name. */
  providers: Array<NamedProvider>;
  /** The policy of this vault. */
  policy: Array<PolicySetting>;
  /** The file with the policy. */
  policyFile: string;
}

/** A provider that has a name. */
export interface NamedProvider {
  /** The name. */
  name: string;
  /** Whether it runs on this machine and needs no key. */
  isLocal: boolean;
}

/** A setting of the policy. */
export interface PolicySetting {
  /** The name, as in `vault-agent config set policy.NAME`. */
  name: string;
  /** The value, in words. */
  value: string;
  /** The meaning. */
  description: string;
}

/** The models of a provider. */
export interface ModelsRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
  /** The provider, by name or address. */
  provider: string;
}

/** The models that a provider names. */
export interface ModelsResult {
  /** Their names. */
  models: Array<string>;
}

/** Another model. Not `Debug`, because of the key. */
export interface SetModelRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
  /** The provider, by name or address. */
  provider: string;
  /** The model; the provider's own if it is left out, as for a file. */
  model?: string | null;
  /** A key, which is kept in the system's keyring; the one that is there stays if it is left out. */
  key?: string | null;
}

/** An answer of the model. */
export interface TestModelResult {
  /** The name of the model. */
  model: string;
  /** The beginning of its answer. */
  reply: string;
  /** Milliseconds that it took. */
  tookMs: number;
}

/** The models, and the work on one that is under way. */
export interface EmbeddingModelsResult {
  /** The model whose vectors the vault's index has; none if the vault was not indexed yet. */
  used?: string | null;
  /** The bundled model, then those that can be downloaded. */
  models: Array<EmbeddingModel>;
  /** The work under way in this process. */
  work?: ModelWork | null;
}

/** A model. */
export interface EmbeddingModel {
  /** Its name. */
  name: string;
  /** Its languages, its cost, published rankings and its licence. */
  description: string;
  /** Whether it can be used without a download. */
  installed: boolean;
  /** Whether its vectors were compared with those of another engine. */
  tested: boolean;
}

/** Work on a model. */
export interface ModelWork {
  /** The model. */
  name: string;
  /** Its step. */
  step: ModelStep;
  /** The share of the step that is done, from 0 to 1. */
  share: number;
}

/** A step of the work on a model. */
export type ModelStep = "download" | "quantize" | "embed";

/** A model by its name. */
export interface NamedModelRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
  /** The model. */
  name: string;
}

/** A download, for the person who decides about it. */
export interface DownloadDescription {
  /** Its size, address, commit and licence, and the model; then on a line each its files. */
  text: string;
  /** The commit, which [`AddModelRequest`] repeats. */
  revision: string;
}

/** A download that a person has agreed to. */
export interface AddModelRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
  /** The model. */
  name: string;
  /** The commit that was described. */
  revision: string;
}

/** A search of the list. */
export interface PluginsRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
  /** What a person wants to do, in words; without it no plugin is returned. */
  instruction?: string | null;
  /** The most plugins to return: 3 unless it says otherwise, and at most 20. */
  limit?: number | null;
}

/** The plugins that fit an instruction. */
export interface PluginsResult {
  /** The list; absent before it is downloaded. */
  list?: PluginList | null;
  /** The best first. Plugins that hardly fit are left out. */
  plugins: Array<CommunityPlugin>;
}

/** The list that a person has downloaded. */
export interface PluginList {
  /** The address that it was downloaded from. */
  address: string;
  /** When, as in RFC 3339. */
  downloaded: string;
  /** How many plugins are on it. */
  count: number;
}

/** A plugin of the list, in its author's words. */
export interface CommunityPlugin {
  /** Its id in Obsidian. */
  id: string;
  /** Its name. */
  name: string;
  /** Its author. */
  author?: string;
  /** Its purpose. */
  description?: string;
}

/** A download of the list. */
export interface DownloadPluginsRequest {
  /** The vault's folder, absolute. It can be left out if the program was started with one `--vault`. */
  vault?: string | null;
  /** The address of the list, which a person has seen. */
  address: string;
}

/** Asks for the state of the editor. */
export interface HostStateRequest {
  /** The most UTF-16 units of a selection that the program takes. */
  longestSelection: number;
  /** The most open files that the program takes. */
  mostFiles: number;
}

/** The state of the editor that had the focus last. The file of a selection or a cursor is saved, so that its text on the disk is the text that they are positions in. */
export interface HostState {
  /** The path of the active file in the vault. */
  activeFile?: string | null;
  /** The selection in it, unless it is empty. */
  selection?: HostSelection | null;
  /** The cursor in it. */
  cursor?: HostPosition | null;
  /** The paths of the open files, including the active one. */
  openFiles: Array<string>;
}

/** A selected text. */
export interface HostSelection {
  /** The text. */
  text: string;
  /** Where it begins. */
  from: HostPosition;
  /** Where it ends. */
  to: HostPosition;
}

/** A position in a text. */
export interface HostPosition {
  /** The line, from 0. */
  line: number;
  /** The column, from 0, in UTF-16 units. */
  ch: number;
}

/** Asks which files are open in editors. Nothing is saved for it. */
export interface HostFilesRequest {
  /** The most files that the program takes. */
  mostFiles: number;
}

/** The files that are open in editors. */
export interface HostFiles {
  /** Their paths in the vault. */
  files: Array<string>;
}

/** Asks to show a note. */
export interface HostOpenRequest {
  /** Its path in the vault. */
  path: string;
  /** The line to show, from 1. */
  line?: number | null;
  /** Whether in a new tab. */
  inNewTab: boolean;
}

/** Whether a note was shown. */
export interface HostOpened {
  /** Whether it was. */
  opened: boolean;
}

/** Asks for the commands of the app. */
export interface HostCommandsRequest {
  /** The most commands that the program takes. */
  mostCommands: number;
}

/** The commands of the app. */
export interface HostCommands {
  /** The commands. */
  commands: Array<AppCommand>;
}

/** A command of the app. */
export interface AppCommand {
  /** Its id. */
  id: string;
  /** Its name for people. */
  name: string;
}

/** Asks to run a command, in the editor that had the focus last. */
export interface HostRunRequest {
  /** Its id. */
  id: string;
}

/** Whether a command ran. */
export interface HostRan {
  /** Whether it ran. A command can be unavailable at the moment. */
  ran: boolean;
}

/** Asks to make an approved edit in the editor of a file, as one step of its undo, and to save it. */
export interface HostEditRequest {
  /** The path of the file in the vault. */
  path: string;
  /** Its text. An editor with another text is saved, and nothing else is done. */
  before: string;
  /** Its new text. */
  after: string;
}

/** Whether an edit was made. The program reads the file in any case. */
export interface HostEdited {
  /** Whether it was made and saved. */
  edited: boolean;
}

/** An approval that is asked for: `_meta.vault` of the tool call of a `session/request_permission`, for clients that declare `_meta.vault.approvals` among their capabilities. */
export interface Approval {
  /** The tool or command. */
  tool: string;
  /** The purpose of the tool, in its own words. */
  purpose?: string | null;
  /** The question, in one line. */
  question: string;
  /** The highest risk of its effects. */
  risk: ApprovalRisk;
  /** Whether and how it can be undone. */
  undo: string;
  /** The data that leaves this machine, and its receiver. */
  leaves?: string | null;
  /** The reason for which it is asked again, for example that edited arguments are invalid. */
  problem?: string | null;
  /** The plan, if it is one. Its steps are the boxes of the form that the option `pick` opens. */
  plan?: ApprovalPlan | null;
  /** Files that it changes. */
  files: Array<FileChange>;
  /** Folders that it creates or removes. */
  folders: Array<FolderChange>;
  /** Notices for the person. */
  notices: Array<string>;
  /** The parts that can be left out, in the order of the boxes in the form that the option `pick` opens. */
  parts: Array<ApprovalPart>;
  /** The items of a result that is shared with the model, in the order of those boxes. */
  items: Array<string>;
}

/** The highest risk of a call. */
export type ApprovalRisk = "read" | "write" | "delete" | "command";

/** A plan that is approved. */
export interface ApprovalPlan {
  /** The goal. */
  goal: string;
  /** The assumptions of its author. */
  assumptions: Array<string>;
  /** Its steps in the order in which they run. */
  steps: Array<ApprovalStep>;
  /** How many notes are created, changed, moved or deleted. */
  notes: number;
  /** How many links of existing notes change. */
  links: number;
}

/** A step of a plan. */
export interface ApprovalStep {
  /** Its id. */
  id: string;
  /** Its tool. */
  tool: string;
  /** The author's description. */
  preview?: string | null;
  /** The worst that it does. */
  risk: ApprovalRisk;
  /** How often its tool is called. */
  calls: number;
  /** Why it does not run, if it does not. */
  skipped?: string | null;
  /** Notices for the person. */
  notices: Array<string>;
}

/** A part of a change that can be left out: a hunk of a file, or a file that is not text. */
export interface ApprovalPart {
  /** The file. */
  path: string;
  /** The hunk as a unified diff; empty for a file that is not text. */
  diff: string;
}

/** What a client declares in `clientCapabilities._meta.vault.host` if it is a live host. */
export interface HostCapability {
  /** The version of the requests. A client of another version gets none. */
  version: number;
  /** The folder of the vault that the app has open, absolute. The requests are about this vault. */
  vault: string;
}

/** The requests of the program to a client that is a live host, with their parameters and results. */
export interface HostMethods {
  "_vault/host/state": {
    params: HostStateRequest;
    result: HostState;
  };
  "_vault/host/open_files": {
    params: HostFilesRequest;
    result: HostFiles;
  };
  "_vault/host/open": {
    params: HostOpenRequest;
    result: HostOpened;
  };
  "_vault/host/commands": {
    params: HostCommandsRequest;
    result: HostCommands;
  };
  "_vault/host/run_command": {
    params: HostRunRequest;
    result: HostRan;
  };
  "_vault/host/edit": {
    params: HostEditRequest;
    result: HostEdited;
  };
}

/** Methods of vault-agent beside those of the Agent Client Protocol, with their parameters and results. */
export interface VaultMethods {
  "_vault/search": {
    params: SearchRequest;
    result: SearchResult;
  };
  "_vault/related": {
    params: RelatedRequest;
    result: RelatedResult;
  };
  "_vault/mentions": {
    params: MentionsRequest;
    result: MentionsResult;
  };
  "_vault/vocabulary": {
    params: VaultRequest;
    result: VocabularyResult;
  };
  "_vault/transactions": {
    params: TransactionsRequest;
    result: TransactionsResult;
  };
  "_vault/transaction": {
    params: TransactionRequest;
    result: TransactionResult;
  };
  "_vault/prepare": {
    params: PrepareRequest;
    result: PrepareResult;
  };
  "_vault/apply": {
    params: ApplyRequest;
    result: ApplyResult;
  };
  "_vault/index_state": {
    params: VaultRequest;
    result: IndexStateResult;
  };
  "_vault/macros": {
    params: VaultRequest;
    result: MacrosResult;
  };
  "_vault/save_macro": {
    params: SaveMacroRequest;
    result: NamedMacro;
  };
  "_vault/model_state": {
    params: VaultRequest;
    result: ModelStateResult;
  };
  "_vault/models": {
    params: ModelsRequest;
    result: ModelsResult;
  };
  "_vault/set_model": {
    params: SetModelRequest;
    result: ModelStateResult;
  };
  "_vault/test_model": {
    params: VaultRequest;
    result: TestModelResult;
  };
  "_vault/embedding_models": {
    params: VaultRequest;
    result: EmbeddingModelsResult;
  };
  "_vault/describe_download": {
    params: NamedModelRequest;
    result: DownloadDescription;
  };
  "_vault/add_embedding_model": {
    params: AddModelRequest;
    result: EmbeddingModelsResult;
  };
  "_vault/use_embedding_model": {
    params: NamedModelRequest;
    result: EmbeddingModelsResult;
  };
  "_vault/plugins": {
    params: PluginsRequest;
    result: PluginsResult;
  };
  "_vault/download_plugins": {
    params: DownloadPluginsRequest;
    result: PluginList;
  };
}
