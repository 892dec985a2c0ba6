// The smallest agent: answers every request with what it was asked.
import { createServer } from "node:http";

const { HOST = "127.0.0.1", PORT = "8000" } = process.env;
const BODY_BYTES_MAX = 1024 * 1024;

const server = createServer(async (request, response) => {
  if (request.method !== "POST") return send(response, 200, { agent: "echo", usage: 'POST {"inputs": "hello"}' });
  try {
    const { inputs = "" } = JSON.parse(await read(request));
    send(response, 200, { output: `You said: ${inputs}` });
  } catch (error) {
    send(response, 400, { error: `The body must be JSON with an "inputs" member: ${error.message}` });
  }
});

async function read(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new Error("it is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function send(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

server.listen(Number(PORT), HOST, () => console.log(`listening on http://${HOST}:${server.address().port}`));
process.on("SIGTERM", () => server.close(() => process.exit(0)));
