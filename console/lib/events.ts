/** Server-sent events of a response, as they come. */
export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const frames = (rest + decoder.decode(value, { stream: true })).replaceAll("\r\n", "\n").split("\n\n");
      rest = frames.pop() ?? "";
      for (const frame of frames) yield eventOf(frame);
    }
  } finally {
    await reader.cancel().catch(() => {}); // the connection is gone already
  }
}

function eventOf(frame: string): ServerEvent {
  const event = { id: "", event: "message", data: "" };
  for (const line of frame.split("\n")) {
    const colon = line.indexOf(":");
    const [name, value] = [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
    if (name === "data") event.data += event.data === "" ? value : `\n${value}`;
    else if (name === "id" || name === "event") event[name] = value;
  }
  return event;
}
