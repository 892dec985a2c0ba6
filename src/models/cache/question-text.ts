/** The text of a request's last message, and the request without it. */
import { at, isRecord, itemsOf } from "../../lib/untrusted-json.ts";
import type { ClientCall } from "../client-call.ts";
import type { DialectName } from "../providers/dialect.ts";

export interface QuestionText {
  text: string;
  /** The body with the text taken out. */
  rest: string;
}

/** Where each API has its messages. */
const MESSAGES: Partial<Record<DialectName, string>> = {
  "openai-chat": "messages",
  "anthropic-messages": "messages",
  "openai-responses": "input",
};

const TEXT_PARTS: ReadonlySet<unknown> = new Set(["text", "input_text"]);

/** Embedding models read about 8000 tokens; a longer text is rarely asked twice. */
const TEXT_CHARACTERS_MAX = 8000;

/** Null for a request whose last message is not a text of the user alone. */
export function questionText({ body, dialect }: Pick<ClientCall, "body" | "dialect">): QuestionText | null {
  const member = MESSAGES[dialect.name];
  const request: unknown = member === undefined ? null : parse(body);
  if (member === undefined || !isRecord(request)) return null;
  const messages = request[member];
  if (typeof messages === "string") return result(messages, { ...request, [member]: null });
  const last = itemsOf(messages).at(-1);
  const text = isRecord(last) && last.role === "user" ? textOf(last.content) : null;
  if (text === null || !isRecord(last)) return null;
  return result(text, { ...request, [member]: [...itemsOf(messages).slice(0, -1), { ...last, content: null }] });
}

function result(text: string, rest: object): QuestionText | null {
  const isFit = text.trim() !== "" && text.length <= TEXT_CHARACTERS_MAX;
  return isFit ? { text, rest: JSON.stringify(rest) } : null;
}

/** Pictures and files are part of the question, and have no embedding here. Marks on a part are its own. */
function textOf(content: unknown): string | null {
  if (typeof content === "string") return content;
  const [only, ...others] = itemsOf(content);
  const text = at(only, "text");
  const isText = isRecord(only) && TEXT_PARTS.has(only.type) && Object.keys(only).length === 2;
  return isText && others.length === 0 && typeof text === "string" ? text : null;
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return null;
  }
}
