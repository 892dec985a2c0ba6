/** The text that people read in an answer of an agent. Agents are free in what they send, so nothing is relied on. */
import { isObject, textAt } from "./members.ts";

/** Where frameworks put the text of an answer, in the order in which the members are tried. */
const TEXT_MEMBERS = ["output", "content", "text", "message", "answer", "response", "delta"];

/** The text of one event of a stream; events that only mark the end have none. */
export function textOfEvent(data: string): string {
  if (data === "" || data === "[DONE]") return "";
  const value = parsed(data);
  if (value === undefined) return data;
  if (typeof value === "string") return value;
  const [choice] = isObject(value) && Array.isArray(value.choices) ? value.choices : [];
  return textAt(choice, "delta.content") || memberText(value) || "";
}

/** The text of a whole answer: its text member where it has one, else all of it. */
export function textOfAnswer(body: string): string {
  const value = parsed(body);
  if (typeof value === "string") return value;
  return value === undefined ? body : memberText(value) || JSON.stringify(value, null, 2);
}

/** The text of a message that an agent keeps in a thread: text, parts with texts, or any object. */
export function textOfMessage(message: unknown): string {
  const content = isObject(message) ? message.content : message;
  if (typeof content === "string") return content;
  if (Array.isArray(content) && content.every((part) => textAt(part, "text") !== ""))
    return content.map((part) => textAt(part, "text")).join("\n");
  return JSON.stringify(content ?? message, null, 2);
}

const memberText = (value: unknown): string => TEXT_MEMBERS.map((name) => textAt(value, name)).find(Boolean) ?? "";

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
