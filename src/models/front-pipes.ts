/** What happens to a chat answer on its way to a caller of another API: behind the pipe that makes or reads the chat. */
import { formatSseEvent, parseSseEvent, SseSplitter } from "../lib/network/sse.ts";
import { at, isRecord } from "../lib/untrusted-json.ts";
import type { BodyPipe } from "./body-pipes.ts";
import { UntranslatableAnswer } from "./providers/chat-translation.ts";
import type { StreamFailure } from "./providers/dialect.ts";
import type { Front, FrontContext, FrontEvent } from "./providers/fronts/front.ts";

/** A chat answer is far shorter; without a limit a provider could fill the memory. */
const ANSWER_MAX_BYTES = 16 * 1024 * 1024;

export function frontJsonPipe(inner: BodyPipe, front: Front, context: FrontContext): BodyPipe {
  const kept: Buffer[] = [];
  let bytes = 0;
  const keep = (out: Buffer | string | null): void => {
    if (out === null) return;
    const part = typeof out === "string" ? Buffer.from(out) : out;
    bytes += part.length;
    if (bytes <= ANSWER_MAX_BYTES) kept.push(part);
  };
  return {
    chunk(data) {
      keep(inner.chunk(data));
      return null;
    },
    end() {
      keep(inner.end());
      if (bytes > ANSWER_MAX_BYTES) throw new UntranslatableAnswer("longer than can be translated");
      return JSON.stringify(front.fromChat(parse(Buffer.concat(kept).toString("utf8")), context));
    },
    broke: false,
    fail: () => null,
  };
}

/** An event larger than this is no chunk of a chat. */
const EVENT_MAX_BYTES = 16 * 1024 * 1024;

export function frontEventPipe(inner: BodyPipe, front: Front, context: FrontContext): BodyPipe {
  const splitter = new SseSplitter();
  const stream = front.stream(context);
  let mode: "running" | "done" | "broke" = "running";

  const breakOff = (failure: StreamFailure): string => {
    mode = "broke";
    return format(stream.fail(failure));
  };

  function translate(block: Buffer): string {
    const event = parseSseEvent(block);
    if (!event || mode !== "running") return "";
    if (event.data === "[DONE]") {
      mode = "done";
      return format(stream.end());
    }
    try {
      const json = parse(event.data);
      const error = at(json, "error");
      return isRecord(error) ? breakOff(failureOf(error)) : format(stream.push(json));
    } catch (error) {
      if (!(error instanceof UntranslatableAnswer)) throw error;
      return breakOff({ code: "PROVIDER_BAD_RESPONSE", message: error.message, status: 502 });
    }
  }

  function passed(out: Buffer | string | null): string {
    if (out === null) return "";
    const text = splitter
      .push(typeof out === "string" ? Buffer.from(out) : out)
      .map(translate)
      .join("");
    if (splitter.pendingBytes <= EVENT_MAX_BYTES || mode !== "running") return text;
    return text + breakOff({ code: "PROVIDER_BAD_RESPONSE", message: "An event is too long.", status: 502 });
  }

  return {
    chunk(data) {
      const text = passed(inner.chunk(data));
      return text === "" ? null : text;
    },
    end() {
      let text = passed(inner.end());
      const rest = splitter.drain();
      if (rest.length > 0) text += translate(rest);
      if (mode !== "running") return text;
      return text + breakOff({ code: "PROVIDER_BAD_RESPONSE", message: "The stream ended early.", status: 502 });
    },
    get done() {
      return mode === "done";
    },
    get broke() {
      return mode === "broke" || inner.broke;
    },
    fail(failure) {
      return mode === "running" ? breakOff(failure) : "";
    },
  };
}

const format = (events: FrontEvent[]): string =>
  events.map(({ event, data }) => formatSseEvent(JSON.stringify(data), event)).join("");

const failureOf = (error: Record<string, unknown>): StreamFailure => ({
  code: String(error.code ?? error.type ?? "provider_error"),
  message: String(error.message ?? "The provider reported an error."),
  status: 502,
});

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UntranslatableAnswer("not JSON");
  }
}
