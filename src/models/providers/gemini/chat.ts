import { at } from "../../../lib/untrusted-json.ts";
import type { ChatTranslation } from "../chat-translation.ts";
import { fromGenerated } from "./chat-answer.ts";
import { toGenerateRequest } from "./chat-request.ts";
import { GenerateStream } from "./chat-stream.ts";

export const geminiChat: ChatTranslation = {
  path: "/v1beta/models/{model}:generateContent",
  streamPath: "/v1beta/models/{model}:streamGenerateContent?alt=sse",
  toProvider: toGenerateRequest,
  fromProvider: fromGenerated,
  stream: (context) => new GenerateStream(context),
  error(body) {
    // A failed stream that was not asked for as events comes as a list of one.
    const error = at(Array.isArray(body) ? body[0] : body, "error");
    const message = at(error, "message");
    return typeof message === "string"
      ? { message, type: String(at(error, "status") ?? "api_error"), code: null }
      : null;
  },
};
