/** The lines of a stream, as they arrive, until its end or that of the signal. */

type Signal = AbortSignal | undefined;

export async function* linesOf(response: Response, signal?: Signal): AsyncGenerator<string, void> {
  let rest = "";
  for await (const text of textsOf(response, signal)) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}

/** Not every browser iterates over a stream itself. A consumer that stops early cancels the stream. */
async function* textsOf(response: Response, signal: Signal): AsyncGenerator<string, void> {
  const reader = response.body?.getReader();
  if (!reader) return;
  const decoder = new TextDecoder();
  const stop = (): void => void reader.cancel().catch(() => {}); // it may have ended already
  signal?.addEventListener("abort", stop, { once: true });
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { done, value } = await reader.read();
      if (done) break;
      yield decoder.decode(value, { stream: true });
    }
    signal?.throwIfAborted();
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}

/** The `data` of server-sent events. */
export async function* eventsOf(response: Response, signal?: Signal): AsyncGenerator<string, void> {
  let data: string[] = [];
  for await (const raw of linesOf(response, signal)) {
    const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
    if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    else if (line === "" && data.length > 0) {
      yield data.join("\n");
      data = [];
    }
  }
  if (data.length > 0) yield data.join("\n");
}
