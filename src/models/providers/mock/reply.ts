/**
 * What the development provider says: the text of the last message again, or a call of a tool that the text names.
 * The same request always gets the same answer, so that tests of an agent can be written against it.
 */
import { NO_USAGE, type TokenUsage } from "../token-usage.ts";
import type { Conversation } from "./conversation.ts";
import { sampleOf } from "./schema-sample.ts";

export interface Reply {
  call: { name: string; args: string } | null;
  /** The answer in the pieces a stream sends; of a call, the pieces of its arguments. */
  pieces: string[];
  truncated: boolean;
  usage: TokenUsage;
}

export function replyTo(conversation: Conversation): Reply {
  const inputTokens = inputTokensOf(conversation);
  const tool = toolFor(conversation);
  if (tool) {
    const args = JSON.stringify(argumentsIn(conversation.last) ?? sampleOf(tool.schema, conversation.last));
    const pieces = piecesOf(args);
    return { call: { name: tool.name, args }, pieces, truncated: false, usage: counted(inputTokens, pieces.length) };
  }
  const text = conversation.json ? jsonReply(conversation) : conversation.last || "(nothing to echo)";
  const all = piecesOf(text);
  const pieces = conversation.maxTokens === null ? all : all.slice(0, conversation.maxTokens);
  return {
    call: null,
    pieces,
    truncated: pieces.length < all.length,
    usage: counted(inputTokens, pieces.length),
  };
}

export const inputTokensOf = ({ texts }: Conversation): number =>
  texts.reduce((sum, text) => sum + piecesOf(text).length, 0);

/** One token is one word with the space before it. */
const piecesOf = (text: string): string[] => text.match(/\s*\S+|\s+$/g) ?? [];

const counted = (inputTokens: number, outputTokens: number): TokenUsage => ({ ...NO_USAGE, inputTokens, outputTokens });

function toolFor({ tools, force, afterTool, last }: Conversation): Conversation["tools"][number] | null {
  if (afterTool) return null;
  if (force === "any") return tools[0] ?? null;
  if (force !== null) return tools.find((tool) => tool.name === force) ?? null;
  return tools.find((tool) => tool.name !== "" && last.includes(tool.name)) ?? null;
}

/** A JSON object in the text gives the arguments: "call get_weather {"city":"Paris"}". */
function argumentsIn(text: string): Record<string, unknown> | null {
  const start = text.indexOf("{");
  const end = text.lastIndexOf("}");
  if (start < 0 || end < start) return null;
  try {
    return JSON.parse(text.slice(start, end + 1)) as Record<string, unknown>;
  } catch {
    // Braces that are not JSON are only text.
    return null;
  }
}

function jsonReply({ json, last }: Conversation): string {
  return JSON.stringify(json?.schema ? sampleOf(json.schema, last) : { echo: last });
}
