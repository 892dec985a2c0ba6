/** Tools of the conformance suite that ask the client something, each in the way of its era. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type InputRequest,
  inputRequired,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";

interface Round {
  inputRequests: Record<string, InputRequest>;
  /** Kept in the state that travels with the question; none without it. */
  round?: number;
}

export type AskingTool = { inputSchema?: z.ZodObject } & (
  | { era: "legacy"; ask(args: Record<string, string>, context: ServerContext): Promise<string> }
  | { era: "modern"; round(context: ServerContext, round: number): Round | string }
);

type Properties = Parameters<typeof inputRequired.elicit>[0]["requestedSchema"];

const form = (message: string, properties: Record<string, object>): InputRequest =>
  inputRequired.elicit({
    message,
    requestedSchema: { type: "object", properties, required: Object.keys(properties) } as Properties,
  });
const sampled = (said: string, maxTokens: number): InputRequest =>
  inputRequired.createMessage({ messages: [{ role: "user", content: { type: "text", text: said } }], maxTokens });

const NAME_QUESTION = form("What is your name?", { name: { type: "string" } });
const CONFIRM_QUESTION = form("Please confirm", { ok: { type: "boolean" } });
export const CONTEXT_QUESTION = form("What context should the prompt use?", { context: { type: "string" } });

/** As the request says, in the newer protocol. */
const capabilitiesOf = ({ mcpReq }: ServerContext): ClientCapabilities =>
  (mcpReq.envelope as Record<string, ClientCapabilities> | undefined)?.[CLIENT_CAPABILITIES_META_KEY] ?? {};

/** What the client gave for a question, when it is an answer to it. */
const given = ({ mcpReq }: ServerContext, key: string): Record<string, unknown> | undefined =>
  mcpReq.inputResponses?.[key] as Record<string, unknown> | undefined;
const filled = (context: ServerContext, key: string): Record<string, unknown> | undefined =>
  given(context, key)?.content as Record<string, unknown> | undefined;

/** One question, asked until it is answered. */
const once =
  (key: string, request: InputRequest, done: (answer: Record<string, unknown>) => string, round?: number) =>
  (context: ServerContext): Round | string => {
    const answer = given(context, key);
    const isForm = request.method === "elicitation/create";
    if (answer === undefined || (isForm && typeof answer.content !== "object"))
      return { inputRequests: { [key]: request }, ...(round === undefined ? {} : { round }) };
    return done(answer);
  };

const modern = (round: (context: ServerContext, round: number) => Round | string): AskingTool => ({
  era: "modern",
  round,
});

async function elicited({ mcpReq }: ServerContext, message: string, properties: Record<string, object>) {
  const requestedSchema = { type: "object", properties, required: [] } as unknown as Properties;
  const { action, content } = await mcpReq.elicitInput({ message, requestedSchema } as never);
  return `Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`;
}

const options = ["option1", "option2", "option3"];
const titled = (kind: string): { const: string; title: string }[] =>
  ["First", "Second", "Third"].map((word, index) => ({ const: `value${index + 1}`, title: `${word} ${kind}` }));

export const ASKING_TOOLS: Record<string, AskingTool> = {
  test_sampling: {
    era: "legacy",
    inputSchema: z.object({ prompt: z.string() }),
    async ask({ prompt = "" }, { mcpReq }) {
      const messages = [{ role: "user" as const, content: { type: "text" as const, text: prompt } }];
      const { content } = await mcpReq.requestSampling({ messages, maxTokens: 100 });
      return `LLM response: ${JSON.stringify(content)}`;
    },
  },
  test_elicitation: {
    era: "legacy",
    inputSchema: z.object({ message: z.string() }),
    ask: ({ message = "" }, context) =>
      elicited(context, message, { username: { type: "string" }, email: { type: "string" } }),
  },
  test_elicitation_sep1034_defaults: {
    era: "legacy",
    ask: (_args, context) =>
      elicited(context, "Please review", {
        name: { type: "string", default: "John Doe" },
        age: { type: "integer", default: 30 },
        score: { type: "number", default: 95.5 },
        status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
        verified: { type: "boolean", default: true },
      }),
  },
  test_elicitation_sep1330_enums: {
    era: "legacy",
    ask: (_args, context) =>
      elicited(context, "Please choose", {
        untitledSingle: { type: "string", enum: options },
        titledSingle: { type: "string", oneOf: titled("Option") },
        legacyEnum: {
          type: "string",
          enum: ["opt1", "opt2", "opt3"],
          enumNames: ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti: { type: "array", items: { type: "string", enum: options } },
        titledMulti: { type: "array", items: { anyOf: titled("Choice") } },
      }),
  },
  test_input_required_result_elicitation: modern(
    once("user_name", NAME_QUESTION, ({ content }) => `Hello, ${(content as { name: string }).name}!`),
  ),
  test_input_required_result_sampling: modern(
    once("capital_question", sampled("What is the capital of France?", 100), (answer) => JSON.stringify(answer)),
  ),
  /** Called by a client that cannot: the kit refuses for it. */
  test_missing_capability: modern(once("word", sampled("Say a word", 10), (answer) => JSON.stringify(answer))),
  test_input_required_result_list_roots: modern(
    once("client_roots", inputRequired.listRoots(), (answer) => JSON.stringify(answer)),
  ),
  test_input_required_result_request_state: modern((context, round) =>
    round === 1 && filled(context, "confirm") ? "state-ok" : { inputRequests: { confirm: CONFIRM_QUESTION }, round: 1 },
  ),
  test_input_required_result_tampered_state: modern(once("confirm", CONFIRM_QUESTION, () => "Confirmed.", 1)),
  test_input_required_result_multiple_inputs: modern((context) => {
    const keys = ["user_name", "greeting", "client_roots"];
    if (keys.every((key) => given(context, key))) return "All of them.";
    const inputRequests = {
      user_name: NAME_QUESTION,
      greeting: sampled("Generate a greeting", 50),
      client_roots: inputRequired.listRoots(),
    };
    return { inputRequests, round: 1 };
  }),
  test_input_required_result_multi_round: modern((context, round) => {
    if (round === 2 && filled(context, "step2")) return "Both steps are done.";
    if (round >= 1 && filled(context, "step1"))
      return {
        inputRequests: { step2: form("Step 2: What is your favorite color?", { color: { type: "string" } }) },
        round: 2,
      };
    return { inputRequests: { step1: form("Step 1: What is your name?", { name: { type: "string" } }) }, round: 1 };
  }),
  /** Asks only for what the client says it can do. */
  test_input_required_result_capabilities: modern((context) => {
    const can = capabilitiesOf(context);
    const inputRequests = {
      ...(can.elicitation ? { user_name: NAME_QUESTION } : {}),
      ...(can.sampling ? { greeting: sampled("Generate a greeting", 50) } : {}),
    };
    return Object.keys(inputRequests).some((key) => !given(context, key)) ? { inputRequests } : "Nothing to ask.";
  }),
};
