/** Makes the call of every test vector with the installed SDK; prints one outcome a line. Arguments: the vectors, the server. */
import { Agent, Berth, BerthError, Job, McpServer, Model, Sandbox } from "@berth/sdk";

declare const process: { argv: string[]; env: Record<string, string> };

interface Args {
  operation: string;
  input: Record<string, unknown>;
  options: Record<string, unknown>;
  command: string;
  code: string;
  path: string;
  port: number;
  data: string;
  files: Record<string, string>;
  pattern: string;
  id: string;
  function: string;
  name: string;
  arguments: Record<string, unknown>;
  model: string;
  agent: string;
  inputs: string;
  job: string;
  tasks: Record<string, unknown>[];
  times: number;
}

interface Listed extends AsyncIterable<unknown> {
  toArray(): Promise<unknown[]>;
}

type Operations = Record<string, (input: unknown) => Promise<unknown> & Listed>;

const operations = (berth: Berth): Operations => berth.api as unknown as Operations;
const withKey = (url: string): Berth => new Berth({ url, apiKey: "key", workspace: "main" });
const withToken = (url: string): Berth => new Berth({ url, clientCredentials: { id: "id", secret: "secret" } });
const box = (url: string): Promise<Sandbox> => Sandbox.get("box", { berth: withKey(url) });

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

const CALLS: Record<string, (url: string, args: Args) => Promise<unknown>> = {
  api: async (url, { operation, input }) => operations(withKey(url))[operation]?.(input),
  apiWithToken: async (url, { operation, input }) => operations(withToken(url))[operation]?.(input),
  list: async (url, { operation, input }) => operations(withKey(url))[operation]?.(input).toArray(),
  async profile(url, { operation, input }) {
    process.env.BERTH_PROFILE = url.slice(url.lastIndexOf("/") + 1);
    return operations(new Berth())[operation]?.(input);
  },
  async elsewhere(url, { operation, input }) {
    process.env.BERTH_PROFILE = url.slice(url.lastIndexOf("/") + 1);
    return operations(new Berth({ url: `${url}/elsewhere` }))[operation]?.(input);
  },
  async fetch(url, { port, path }) {
    const box = await Sandbox.get("box", { berth: withToken(url) });
    const response = await box.fetch(port, path);
    return [response.status, await response.text()];
  },
  create: async (url, { options }) => (await Sandbox.create({ ...options, berth: withKey(url) })).name,
  async token(url, { times }) {
    const berth = withToken(url);
    const tokens: string[] = [];
    while (tokens.length < times) tokens.push(await berth.token());
    return tokens;
  },
  run: async (url, { command, options }) => (await box(url)).run(command, options),
  runCode: async (url, { code, options }) => (await box(url)).runCode(code, options),
  createCodeContext: async (url, { options }) => (await box(url)).createCodeContext(options),
  "files.read": async (url, { path }) => (await box(url)).files.read(path),
  "files.write": async (url, { path, data, options }) => (await box(url)).files.write(path, data, options),
  "files.list": async (url, { path }) =>
    (await (await box(url)).files.list(path)).map((entry) => [entry.type, entry.path, entry.size]),
  "files.remove": async (url, { path }) => (await box(url)).files.remove(path),
  "files.writeMany": async (url, { path, files }) => (await box(url)).files.writeMany(path, files),
  "files.find": async (url, { path, pattern }) => (await box(url)).files.find(path, pattern),
  unmount: async (url, { path }) => (await box(url)).drives.unmount(path),
  "agent.fetch": async (url, { agent, path }) => (await new Agent(agent, { berth: withKey(url) }).fetch(path)).status,
  "process.logs": async (url, { id }) =>
    (await all((await (await box(url)).process(id)).logs())).map((line) => [line.stream, line.text]),
  tool: async (url, args) =>
    (await new McpServer(args.function, { berth: withKey(url) }).call(args.name, args.arguments)).text,
  chat: async (url, { model, input }) =>
    (await new Model(model, { berth: withKey(url) }).chat(input as unknown as string)).text,
  chatStream: async (url, { model, input }) =>
    all(new Model(model, { berth: withKey(url) }).chatStream(input as unknown as string)),
  ask: async (url, { agent, inputs, options }) => new Agent(agent, { berth: withKey(url) }).ask(inputs, options),
  async job(url, { job, tasks }) {
    const told: string[] = [];
    const run = new Job(job, { berth: withKey(url) }).run(tasks);
    const { status } = await run.wait({ onProgress: (execution) => told.push(execution.status) });
    return [status, told];
  },
};

const [vectors = "[]", server = ""] = process.argv.slice(2);
for (const [index, { call, args }] of (JSON.parse(vectors) as { call: string; args: Args }[]).entries()) {
  try {
    const returns = (await CALLS[call]?.(`${server}/${index}`, args)) ?? null;
    console.log(JSON.stringify({ returns }));
  } catch (error) {
    if (!(error instanceof BerthError)) throw error;
    const { code, status, message, nextStep, requestId, retryable } = error;
    console.log(JSON.stringify({ throws: { code, status, message, nextStep, requestId, retryable } }));
  }
}
