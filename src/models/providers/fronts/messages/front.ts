import type { Front } from "../front.ts";
import { fromChat } from "./answer.ts";
import { TITLE, toChat } from "./request.ts";
import { MessageEvents } from "./stream.ts";

/** Error types of this API by HTTP status. */
const TYPES: Record<number, string> = {
  400: "invalid_request_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  529: "overloaded_error",
};

/** Anthropic's Messages API. */
export const messagesFront: Front = {
  title: TITLE,
  toChat,
  fromChat,
  stream: (context) => new MessageEvents(context),
  error: (status, { message }) => ({ type: "error", error: { type: TYPES[status] ?? "api_error", message } }),
};
