// Made by `npm run generate` from scripts/kits/berth.js: what every kit in JavaScript needs of the platform. It is who
// the agent is, where its model, MCP server and sandbox are, what it remembers of a thread, and the HTTP server around it.
import { createHash, randomUUID } from "node:crypto";
import { createServer } from "node:http";

const {
  HOST = "127.0.0.1",
  PORT = "8000",
  BL_API_URL = "http://127.0.0.1:8080/v0",
  BL_RUN_URL = "http://127.0.0.1:8080",
  BL_WORKSPACE = "main",
  BL_NAME = "agent",
  BL_API_KEY,
  BL_CLIENT_CREDENTIALS,
  MODEL = "chat",
  MCP_SERVER = "mcp-hello",
} = process.env;
const BODY_BYTES_MAX = 1024 * 1024;
/** A sandbox ends this long after its last use. */
const SANDBOX_IDLE = "10m";
const INTERPRETERS = { javascript: "node", python: "python3", shell: "sh" };

export const LANGUAGES = Object.keys(INTERPRETERS);
export const SYSTEM_PROMPT = "You are a helpful assistant. Use your tools instead of guessing. Answer briefly.";
/** The model, for any client of OpenAI's API. */
export const model = { name: MODEL, url: `${BL_RUN_URL}/${BL_WORKSPACE}/models/${MODEL}/v1` };
/** An MCP server of the workspace: the template mcp-hello, until MCP_SERVER names another. */
export const mcpUrl = `${BL_RUN_URL}/${BL_WORKSPACE}/functions/${MCP_SERVER}/mcp`;

let token = { text: "", until: 0 };

/** The key that was given, or else a token of the agent itself, renewed a minute before it ends. */
export async function accessToken() {
  if (BL_API_KEY) return BL_API_KEY;
  if (token.until < Date.now()) {
    const { access_token, expires_in } = await parsed(
      await fetch(`${BL_API_URL}/oauth/token`, {
        method: "POST",
        headers: { authorization: `Basic ${BL_CLIENT_CREDENTIALS}`, "content-type": "application/json" },
        body: JSON.stringify({ grant_type: "client_credentials" }),
      }),
    );
    token = { text: access_token, until: Date.now() + (expires_in - 60) * 1000 };
  }
  return token.text;
}

/** `fetch` with the agent's credentials, for clients that take a fetch of their own. */
export async function fetchAsAgent(input, init = {}) {
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
  headers.set("authorization", `Bearer ${await accessToken()}`);
  return fetch(input, { ...init, headers });
}

/** Runs code in a sandbox of the thread, which is made when it is first needed, and returns what the code printed. */
export async function runCode({ language, code }, thread) {
  const name = `code-${createHash("sha256")
    .update(`${BL_NAME}/${thread ?? randomUUID()}`)
    .digest("hex")
    .slice(0, 16)}`;
  const lifecycle = { expirationPolicies: [{ type: "ttl-idle", value: SANDBOX_IDLE, action: "delete" }] };
  await call("POST", `${BL_API_URL}/sandboxes?createIfNotExist=true`, { metadata: { name }, spec: { lifecycle } });
  const box = `${BL_RUN_URL}/${BL_WORKSPACE}/sandboxes/${name}`;
  const file = `/tmp/code-${randomUUID()}`;
  await call("PUT", `${box}/filesystem/${encodeURIComponent(file)}`, { content: code });
  const command = `${INTERPRETERS[language] ?? "sh"} ${file}`;
  const { stdout, stderr, exitCode } = await call("POST", `${box}/process`, { command, waitForCompletion: true });
  return exitCode === 0 ? stdout : `exit code ${exitCode}\n${stdout}${stderr}`;
}

const threadUrl = (thread) => `${BL_API_URL}/agents/${BL_NAME}/threads/${encodeURIComponent(thread)}`;

/** The messages of the thread so far. `berth dev` runs an agent that the platform does not know before its deployment. */
async function recall(thread) {
  const answer = await fetchAsAgent(threadUrl(thread));
  return answer.status === 404 ? null : (await parsed(answer)).messages;
}

async function call(method, url, body) {
  const headers = { "content-type": "application/json", "x-service-workspace": BL_WORKSPACE };
  return parsed(await fetchAsAgent(url, { method, headers, body: JSON.stringify(body) }));
}

async function parsed(answer) {
  const text = await answer.text();
  if (!answer.ok) throw new Error(`The platform answered ${answer.status}: ${text}`);
  return text === "" ? null : JSON.parse(text);
}

/** The message with the next step, where there is one. */
export const explained = (message) =>
  message.includes(`Model ${MODEL} does not exist`)
    ? `${message} Make a model called ${MODEL}, as docs/kits.md shows, or name another: MODEL=NAME berth deploy.`
    : message;

/** `answer({ messages, thread })` gets the conversation with the question as its last message, and returns a text. */
export function serve(answer) {
  const server = createServer(async (request, response) => {
    const send = (status, body) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (request.method !== "POST") return send(405, { error: 'POST {"inputs": "…"}' });
    try {
      const { inputs } = JSON.parse(await read(request));
      if (typeof inputs !== "string" || inputs === "") return send(400, { error: '"inputs" must be a text' });
      const thread = request.headers["x-service-thread-id"];
      const known = thread ? await recall(thread) : null;
      const question = { role: "user", content: inputs };
      const output = await answer({ messages: [...(known ?? []), question], thread });
      const added = [question, { role: "assistant", content: output }];
      if (known !== null) await call("POST", `${threadUrl(thread)}/messages`, { messages: added });
      send(200, { output });
    } catch (error) {
      console.error(error);
      send(error instanceof SyntaxError ? 400 : 502, { error: explained(error.message) });
    }
  });
  server.listen(Number(PORT), HOST, () => console.log(`listening on http://${HOST}:${server.address().port}`));
  process.on("SIGTERM", () => server.close(() => process.exit(0)));
}

async function read(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new Error("the body is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
