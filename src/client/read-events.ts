/** Reads server-sent events as this platform writes them: one `data` line of JSON for each event. */
import type { ServerEvent } from "../contract/event-stream.ts";

/** Longest event; the server sends far shorter ones. */
const EVENT_LENGTH_MAX = 8 * 1024 * 1024;

export async function* readEvents(
  body: AsyncIterable<Uint8Array> | readonly Uint8Array[],
): AsyncGenerator<ServerEvent, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    const frames = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = frames.pop() ?? "";
    if (rest.length > EVENT_LENGTH_MAX)
      throw new Error(`the server sent an event of more than ${EVENT_LENGTH_MAX} characters`);
    for (const frame of frames) {
      const event = eventOf(frame);
      if (event) yield event;
    }
  }
}

/** Returns null for a comment, which only keeps the connection alive. */
function eventOf(frame: string): ServerEvent | null {
  const fields = new Map<string, string>();
  for (const line of frame.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).replace(/^ /, ""));
  }
  const [event, data, id] = [fields.get("event"), fields.get("data"), fields.get("id")];
  if (event === undefined || data === undefined) return null;
  return { event, data: JSON.parse(data) as unknown, ...(id === undefined ? {} : { id }) };
}
