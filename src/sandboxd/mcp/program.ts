/** An MCP server of tools as a program of its own: listens where HOST and PORT say, serves /mcp. */

import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { answerMcp, type McpServer } from "../../lib/mcp/server.ts";
import { sendJson } from "../http/send.ts";

const BODY_BYTES_MAX = 8 * 1024 * 1024;

export async function runMcpProgram<Context>(
  server: McpServer<Context>,
  context: Context,
  { host, port }: { host: string; port: number },
): Promise<void> {
  const listener = createServer(async (req, res) => {
    if ((req.url ?? "/").split("?")[0] !== "/mcp") return sendJson(res, 404, { error: "The server is at /mcp." });
    if (req.method !== "POST") {
      res.setHeader("Allow", "POST");
      return sendJson(res, 405, { error: "POST messages here." });
    }
    const body = await readText(req);
    if (body === null) return sendJson(res, 413, { error: `A message has at most ${BODY_BYTES_MAX} bytes.` });
    const left = new AbortController();
    res.once("close", () => left.abort());
    const header = (name: string): string | undefined => req.headers[name] as string | undefined;
    const answer = await answerMcp(server, { header, body }, context, left.signal);
    if (answer.body === null) res.writeHead(answer.status).end();
    else sendJson(res, answer.status, answer.body);
  });
  await new Promise<void>((resolve, reject) => listener.once("error", reject).listen(port, host, resolve));
  console.log(`listening on http://${host}:${(listener.address() as AddressInfo).port}`);
  process.on("SIGTERM", () => process.exit(0));
}

async function readText(req: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > BODY_BYTES_MAX) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
