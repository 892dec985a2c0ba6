import { at } from "../../../lib/untrusted-json.ts";
import type { ChatTranslation } from "../chat-translation.ts";
import { fromMessage } from "./chat-answer.ts";
import { toMessagesRequest } from "./chat-request.ts";
import { MessageStream } from "./chat-stream.ts";

export const anthropicChat: ChatTranslation = {
  path: "/v1/messages",
  streamPath: "/v1/messages",
  toProvider: toMessagesRequest,
  fromProvider: fromMessage,
  stream: (context) => new MessageStream(context),
  error(body) {
    const error = at(body, "error");
    const message = at(error, "message");
    return typeof message === "string" ? { message, type: String(at(error, "type") ?? "api_error"), code: null } : null;
  },
};
