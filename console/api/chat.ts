/** A conversation with models: each model has its own answers to what was said. */
import { eventsOf } from "../lib/events.ts";
import { call } from "./call.ts";
import { useAnswer } from "./query.ts";
import { sendToWorkload, type Workload } from "./workload.ts";

export interface Answer {
  content: string;
  /** Calls of tools that the model asks for, as text. */
  tools: readonly { name: string; arguments: string }[];
  tokensIn: number;
  tokensOut: number;
  firstMs: number;
  allMs: number;
}

/** What a person said, and the answer of each model by its name. */
export interface Round {
  said: string;
  /** A picture as a `data:` address; empty without. */
  image: string;
  answers: Readonly<Record<string, Answer>>;
}

export interface Settings {
  system: string;
  /** Definitions as the chat API takes them; empty without. */
  tools: readonly unknown[];
}

interface Chunk {
  choices?: { delta?: { content?: string; tool_calls?: readonly ToolDelta[] } }[];
  usage?: { prompt_tokens?: number; completion_tokens?: number } | null;
}

interface ToolDelta {
  index?: number;
  function?: { name?: string; arguments?: string };
}

/** Yields the answer to the last round again and again while it grows. */
export async function* ask(
  workload: Workload,
  { system, tools }: Settings,
  rounds: readonly Round[],
  signal: AbortSignal,
): AsyncGenerator<Answer, void> {
  const begun = performance.now();
  const body = {
    messages: [...(system === "" ? [] : [{ role: "system", content: system }]), ...messagesOf(workload.name, rounds)],
    ...(tools.length === 0 ? {} : { tools }),
    ...{ stream: true, stream_options: { include_usage: true } },
  };
  const response = await sendToWorkload(workload, { method: "POST", path: "/chat/completions", body, signal });
  if (response.body === null) return;
  const calls: { name: string; arguments: string }[] = [];
  let answer: Answer = { content: "", tools: calls, tokensIn: 0, tokensOut: 0, firstMs: 0, allMs: 0 };
  for await (const { data } of eventsOf(response.body)) {
    if (data === "" || data === "[DONE]") continue;
    const { choices, usage } = JSON.parse(data) as Chunk;
    const { content = "", tool_calls = [] } = choices?.[0]?.delta ?? {};
    for (const { index = 0, function: part = {} } of tool_calls) {
      const before = calls[index] ?? { name: "", arguments: "" };
      calls[index] = { name: before.name + (part.name ?? ""), arguments: before.arguments + (part.arguments ?? "") };
    }
    const nowMs = performance.now() - begun;
    const isFirst = answer.firstMs === 0 && (content !== "" || tool_calls.length > 0);
    answer = {
      content: answer.content + content,
      tools: [...calls],
      tokensIn: usage?.prompt_tokens ?? answer.tokensIn,
      tokensOut: usage?.completion_tokens ?? answer.tokensOut,
      firstMs: isFirst ? nowMs : answer.firstMs,
      allMs: nowMs,
    };
    yield answer;
  }
}

/** The rounds as one model knows them. */
export function messagesOf(model: string, rounds: readonly Round[]): object[] {
  return rounds.flatMap(({ said, image, answers }) => {
    const content =
      image === ""
        ? said
        : [
            { type: "text", text: said },
            { type: "image_url", image_url: { url: image } },
          ];
    const answer = answers[model];
    return [{ role: "user", content }, ...(answer ? [{ role: "assistant", content: answer.content }] : [])];
  });
}

interface ModelUsage {
  summary: { requests: number; inputTokens: number; outputTokens: number; cost: number; unpricedRequests: number };
}

const USAGE_EVERY_MS = 10_000;
const DAY_MS = 86_400_000;

/** What a model has cost since midnight, UTC. */
export const useCostToday = (workspace: string, model: string) =>
  useAnswer({
    key: ["model-cost", workspace, model],
    everyMs: USAGE_EVERY_MS,
    ask: async (signal) => {
      const startTime = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS).toISOString();
      const query = { model, startTime };
      return (await call<ModelUsage>({ path: "/usage/models", query, workspace, signal })).summary;
    },
  });
