/**
 * A provider of chat completions that behaves as a model with tools would: it answers a question by calling the tool
 * that fits, then repeats what the tool returned; it knows a name only when the conversation has told it.
 */
import type { ServerResponse } from "node:http";
import { startUpstream, type UpstreamServer } from "../models/upstream-server.ts";

interface Message {
  role: string;
  content?: unknown;
}

interface Tool {
  function: { name: string };
}

/** Words of a question, the end of the name of the tool that answers it, and its arguments. */
const CALLS: readonly { asked: RegExp; tool: string; args: object }[] = [
  { asked: /compute/i, tool: "run_code", args: { language: "javascript", code: "console.log(6 * 7 * 1000)" } },
  { asked: /greet/i, tool: "greet", args: { name: "Ada" } },
];

export const startProvider = (): Promise<UpstreamServer> =>
  startUpstream(({ json }, response) => {
    const { messages = [], tools = [], stream } = json as { messages?: Message[]; tools?: Tool[]; stream?: boolean };
    send(response, answerTo(messages, tools), stream === true);
  });

function answerTo(messages: readonly Message[], tools: readonly Tool[]): Record<string, unknown> {
  const last = messages.at(-1);
  if (last?.role === "tool") return { content: `The tool said: ${textOf(last)}` };
  const question = lastLine(textOf(messages.findLast(({ role }) => role === "user")));
  for (const { asked, tool, args } of CALLS) {
    const found = tools.find(({ function: { name } }) => name.endsWith(tool));
    if (!asked.test(question) || !found) continue;
    const call = { name: found.function.name, arguments: JSON.stringify(args) };
    return { content: null, tool_calls: [{ index: 0, id: "call_1", type: "function", function: call }] };
  }
  const name = /my name is (\w+)/i.exec(messages.map(textOf).join("\n"))?.[1];
  return { content: /what is my name/i.test(question) ? `You are ${name ?? "unknown to me"}.` : "I will remember." };
}

/** CrewAI sends the whole conversation as one message with instructions around it. */
const lastLine = (text: string): string => text.match(/^.*user: .*$/gm)?.at(-1) ?? text;

const textOf = (message: Message | undefined): string =>
  typeof message?.content === "string" ? message.content : JSON.stringify(message?.content ?? "");

function send(response: ServerResponse, message: Record<string, unknown>, stream: boolean): void {
  const about = { id: "chatcmpl-1", created: 1, model: "chat" };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const finish_reason = message.tool_calls ? "tool_calls" : "stop";
  const said = { role: "assistant", ...message };
  if (!stream) {
    const body = { ...about, object: "chat.completion", choices: [{ index: 0, message: said, finish_reason }], usage };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const chunk = (choices: object[], more = {}) =>
    response.write(`data: ${JSON.stringify({ ...about, object: "chat.completion.chunk", choices, ...more })}\n\n`);
  chunk([{ index: 0, delta: said, finish_reason: null }]);
  chunk([{ index: 0, delta: {}, finish_reason }]);
  chunk([], { usage });
  response.end("data: [DONE]\n\n");
}
