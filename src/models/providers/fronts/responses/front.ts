import type { Front } from "../front.ts";
import { fromChat } from "./answer.ts";
import { TITLE, toChat } from "./request.ts";
import { ResponseStream } from "./stream.ts";

/** OpenAI's Responses API, which its agents library and others use by default. */
export const responsesFront: Front = {
  title: TITLE,
  toChat,
  fromChat,
  stream: (context) => new ResponseStream(context),
  error: (_status, { message, type, code }) => ({ error: { message, type, param: null, code } }),
};
