/**
 * A provider is one declaration: its address, how it takes the key, which dialects it speaks and what else differs.
 * Behaviour that all share is the engine's; code of a provider's own exists only where shapes must be translated.
 */
import type { ChatTranslation } from "./chat-translation.ts";
import type { DialectName } from "./dialect.ts";
import type { LocalAnswer, LocalRequest } from "./local-answer.ts";

export interface ProviderDeclaration {
  /** The word in `spec.runtime.type` of a model and `spec.integration` of a connection. */
  name: string;
  aliases?: readonly string[];
  title: string;
  /**
   * Address without the API prefix; {endpointName} is the model's `spec.runtime.endpointName`. Null when only the
   * connection can know it.
   */
  baseUrl: string | null;
  /** Ends of the provider's own host names: `spec.runtime.endpointName` may be an address there. */
  endpointHosts?: readonly string[];
  /** Path below which the API lives; added to paths that come without it. */
  prefix: string;
  /** Paths written from the root, kept as they are: exact, or everything below when they end in a slash. */
  rootPaths?: readonly string[];
  /** Paths that go elsewhere than their spelling says. */
  pathAliases?: Readonly<Record<string, string>>;
  /** Older addressing by a version in the query, chosen by a member of the connection's config. */
  versionedPaths?: { configKey: string; prefix: string; query: string };
  /** How the key is sent. */
  auth: { header: string; scheme?: "Bearer" };
  /** Names under which the key may be stored in the connection's secret, in order. */
  secretNames: readonly string[];
  secretOptional?: true;
  /** Header that carries `spec.runtime.organization`. */
  organizationHeader?: string;
  /** Sent unless the caller sends its own. */
  headers?: Readonly<Record<string, string>>;
  /** Headers of the caller that reach the provider, besides the common ones; a trailing * matches the rest. */
  callerHeaders?: readonly string[];
  /** Query parameters of the caller that never reach the provider: keys of its own. */
  droppedQuery?: readonly string[];
  /** The call that a request without a sub-path makes; {model} is the provider's model name. */
  defaultPath: string;
  /** Dialects it speaks itself. Everything else passes too, but a fallback is only tried in a shared dialect. */
  dialects: readonly DialectName[];
  /** Translation from OpenAI chat, for providers that do not support it themselves. */
  chat?: ChatTranslation;
  /** A native default call whose body has this member instead is taken for OpenAI chat. */
  chatMember?: string;
  /** Whether the usage of a stream must be asked for, comes by itself, or must not be asked for. */
  streamUsage: "ask" | "given";
  /** Members of an OpenAI chat body that it refuses: dropped, or renamed. */
  chatMembers?: Readonly<Record<string, string | null>>;
  /** It has realtime sessions over WebSockets; `versionedPath` is where older addressing has them. */
  realtime?: { versionedPath?: string };
  /** Lists its models, below the prefix; null when it has no such list. */
  modelsPath: string | null;
  /** Answers without a network: the development provider. */
  local?: (request: LocalRequest) => LocalAnswer;
  /** Counts the input tokens of an OpenAI chat body by the rule of the usage in its answers. Absent: an estimate serves. */
  countTokens?: (chat: Record<string, unknown>) => number;
}

/** Members that nearly all OpenAI-compatible providers share. */
export const OPENAI_LIKE = {
  prefix: "/v1",
  auth: { header: "authorization", scheme: "Bearer" },
  defaultPath: "/v1/chat/completions",
  dialects: ["openai-chat", "openai-completions", "openai-embeddings", "openai-other"],
  streamUsage: "ask",
  modelsPath: "/models",
} as const satisfies Partial<ProviderDeclaration>;
