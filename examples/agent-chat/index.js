// An agent that talks: sends the conversation to a model of the workspace and streams the answer back.
// Requests with the same thread id share a conversation; without one there is no memory.
import { createServer } from "node:http";
import { credentials, recall, remember } from "./platform.js";

const {
  HOST = "127.0.0.1",
  PORT = "8000",
  MODEL = "chat",
  SYSTEM_PROMPT = "You are a helpful assistant. Answer briefly.",
  BL_RUN_URL = "http://127.0.0.1:8080",
  BL_WORKSPACE = "main",
} = process.env;
const BODY_BYTES_MAX = 1024 * 1024;

const server = createServer(async (request, response) => {
  if (request.method !== "POST") return fail(response, 405, 'POST {"inputs": "…"}');
  let inputs;
  try {
    ({ inputs } = JSON.parse(await read(request)));
    if (typeof inputs !== "string" || inputs === "") throw new Error('"inputs" must be a text');
  } catch (error) {
    return fail(response, 400, error.message);
  }
  const thread = request.headers["x-service-thread-id"];
  const question = { role: "user", content: inputs };
  try {
    const answer = await ask([...(await recall(thread)), question], response);
    await remember(thread, [question, { role: "assistant", content: answer }]);
    response.end();
  } catch (error) {
    if (response.headersSent) response.destroy(error);
    else fail(response, 502, error.message);
  }
});

/** Streams the model's answer to the client as text, and returns the whole of it; the end is left to the caller. */
async function ask(history, response) {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const answer = await fetch(`${BL_RUN_URL}/${BL_WORKSPACE}/models/${MODEL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(await credentials()) },
    body: JSON.stringify({ messages: [{ role: "system", content: SYSTEM_PROMPT }, ...history], stream: true }),
    signal: gone.signal,
  });
  if (!answer.ok) throw new Error(`The model '${MODEL}' answered ${answer.status}: ${await answer.text()}`);
  response.writeHead(200, { "content-type": "text/plain; charset=utf-8" });
  let whole = "";
  for await (const part of contents(answer.body)) {
    whole += part;
    response.write(part);
  }
  return whole;
}

/** The texts in a stream of server-sent events of chat completion chunks. */
async function* contents(stream) {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data:") || line.includes("[DONE]")) continue;
      const content = JSON.parse(line.slice(5)).choices?.[0]?.delta?.content;
      if (content) yield content;
    }
  }
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

function fail(response, status, error) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error }));
}

server.listen(Number(PORT), HOST, () => console.log(`listening on http://${HOST}:${server.address().port}`));
process.on("SIGTERM", () => server.close(() => process.exit(0)));
