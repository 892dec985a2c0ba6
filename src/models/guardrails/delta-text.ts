/** Where an event of a stream carries a piece of a longer text, in the APIs that the gateway answers in. */
import { at, isRecord, itemsOf } from "../../lib/untrusted-json.ts";

/** A string of an event that continues the string of the same key in earlier events. */
export interface Delta {
  key: string;
  holder: Record<string, unknown>;
  member: string;
  text: string;
}

export function deltasOf(event: unknown): Delta[] {
  const found: Delta[] = [];
  const take = (key: string, holder: unknown, ...members: string[]): void => {
    if (!isRecord(holder)) return;
    for (const member of members) {
      const text = holder[member];
      if (typeof text === "string") found.push({ key: `${key}/${member}`, holder, member, text });
    }
  };
  // OpenAI chat and completions.
  for (const choice of itemsOf(at(event, "choices"))) {
    const key = `choice/${String(at(choice, "index"))}`;
    const delta = at(choice, "delta");
    take(key, choice, "text");
    take(key, delta, "content", "reasoning_content", "reasoning", "refusal");
    take(`${key}/audio`, at(delta, "audio"), "transcript");
    take(`${key}/function`, at(delta, "function_call"), "arguments");
    for (const part of itemsOf(at(delta, "content"))) {
      take(`${key}/part`, part, "text");
      for (const thought of itemsOf(at(part, "thinking"))) take(`${key}/thought`, thought, "text");
    }
    for (const detail of itemsOf(at(delta, "reasoning_details")))
      take(`${key}/detail/${String(at(detail, "index"))}`, detail, "text", "summary");
    for (const call of itemsOf(at(delta, "tool_calls"))) {
      const callKey = `${key}/call/${String(at(call, "index"))}`;
      take(callKey, at(call, "function"), "arguments");
      take(callKey, at(call, "custom"), "input");
    }
  }
  // Anthropic messages.
  take(`block/${String(at(event, "index"))}`, at(event, "delta"), "text", "thinking", "partial_json");
  // OpenAI responses: the type says which text of the item goes on.
  if (isRecord(event) && typeof event.delta === "string")
    take([event.type, event.item_id, event.output_index, event.content_index].map(String).join("/"), event, "delta");
  // Gemini.
  for (const [place, candidate] of itemsOf(at(event, "candidates")).entries()) {
    const key = `candidate/${String(at(candidate, "index") ?? place)}`;
    for (const part of itemsOf(at(at(candidate, "content"), "parts"))) take(key, part, "text");
  }
  return found;
}

/** True for an event after which no text of earlier events goes on. */
export const endsTexts = (event: unknown): boolean => ENDS.test(String(at(event, "type")));

const ENDS = /(?:\.done|\.completed|\.incomplete|\.failed|^content_block_stop|^message_stop)$/;
