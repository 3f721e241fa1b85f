// The part of the Agent Client Protocol, version 1, that the plugin speaks, and readers for what the program sends.

import type { HostCapability } from "../protocol";

/** A piece of a prompt. */
export type PromptBlock =
  | { type: "text"; text: string }
  | { type: "resource"; resource: { uri: string; text: string; mimeType: string } }
  | { type: "image"; data: string; mimeType: string };

/** A place in a file of the disk, lines from 1. */
export interface Location {
  path: string;
  line?: number | null;
}

/** A piece of what a call shows. Diffs are left out: changes are shown from the approval. */
export type CallContent = { type: "content"; content: { type: string; text?: string } } | { type: string };

/** A call of a tool, or what changes of it. */
export interface CallUpdate {
  toolCallId: string;
  title?: string | null;
  name?: string | null;
  kind?: string | null;
  status?: CallStatus | null;
  content?: CallContent[] | null;
  locations?: Location[] | null;
  rawInput?: unknown;
  _meta?: { vault?: unknown } | null;
}

export type CallStatus = "pending" | "in_progress" | "completed" | "failed";

export interface PlanEntry {
  content: string;
  status: "pending" | "in_progress" | "completed";
}

export interface AvailableCommand {
  name: string;
  description: string;
  input?: { hint?: string } | null;
}

/** A setting of a session, with the values that can be chosen. */
export interface SessionOption {
  id: string;
  name: string;
  type: string;
  currentValue: string;
  options: Array<{ value: string; name: string; description?: string | null }>;
}

/** An update of a session. Unknown kinds are ignored. */
export type SessionUpdate =
  | { sessionUpdate: "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk"; content: { type: string; text?: string } }
  | ({ sessionUpdate: "tool_call" | "tool_call_update" } & CallUpdate)
  | { sessionUpdate: "plan"; entries: PlanEntry[] }
  | { sessionUpdate: "available_commands_update"; availableCommands: AvailableCommand[] }
  | { sessionUpdate: "config_option_update"; configOptions: SessionOption[] }
  | { sessionUpdate: "current_mode_update"; currentModeId: string }
  | { sessionUpdate: "session_info_update"; title?: string | null }
  | { sessionUpdate: "notice"; severity: string; title: string; description?: string | null }
  | { sessionUpdate: "compaction_update"; status: string; error?: string | null };

export interface PermissionOption {
  optionId: string;
  name: string;
  kind: string;
}

/** A question to the person about a call. */
export interface PermissionRequest {
  sessionId: string;
  toolCall: CallUpdate;
  options: PermissionOption[];
}

export type PermissionAnswer = { outcome: { outcome: "selected"; optionId: string } } | { outcome: { outcome: "cancelled" } };

/** A field of a form. */
export interface FormField {
  type?: string;
  title?: string | null;
  description?: string | null;
  default?: unknown;
  enum?: string[];
  oneOf?: Array<{ const: string; title?: string }>;
  items?: { enum?: string[]; anyOf?: Array<{ const: string; title?: string }> };
}

/** A form that the program wants to have filled in. */
export interface FormRequest {
  sessionId?: string;
  toolCallId?: string | null;
  message: string;
  requestedSchema?: { properties?: Record<string, FormField>; required?: string[] | null };
}

export type FormAnswer = { action: "accept"; content: Record<string, unknown> } | { action: "decline" } | { action: "cancel" };

export interface SessionInfo {
  sessionId: string;
  title?: string | null;
  updatedAt?: string | null;
}

interface OpenedSession {
  configOptions?: SessionOption[] | null;
}

/** The methods of the protocol that the plugin calls, with their parameters and results. */
export interface AcpMethods {
  "session/new": { params: { cwd: string; mcpServers: [] }; result: OpenedSession & { sessionId: string } };
  "session/load": { params: { sessionId: string; cwd: string; mcpServers: [] }; result: OpenedSession };
  "session/resume": { params: { sessionId: string; cwd: string; mcpServers: [] }; result: OpenedSession };
  "session/list": { params: { cwd: string; cursor?: string }; result: { sessions: SessionInfo[]; nextCursor?: string | null } };
  "session/delete": { params: { sessionId: string }; result: unknown };
  "session/close": { params: { sessionId: string }; result: unknown };
  "session/prompt": { params: { sessionId: string; prompt: PromptBlock[] }; result: { stopReason: string } };
  "session/set_config_option": { params: { sessionId: string; configId: string; value: string }; result: { configOptions: SessionOption[] } };
}

/** The error of a program that has no model yet. */
export const NO_MODEL = -32000;

/** The capabilities that the plugin declares, with the vault whose app it answers for. */
export function capabilities(host: HostCapability | null): object {
  return {
    elicitation: { form: {} },
    session: { notices: {}, compaction: {} },
    _meta: { vault: { approvals: true, ...(host === null ? {} : { host }) } },
  };
}
