/** A server of Node for a function from a web request to a response. */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { Readable } from "node:stream";

type Answer = (request: Request) => Promise<Response>;

export const fetchListener =
  (answer: Answer): RequestListener =>
  (req, res) => {
    serve(answer, req, res).catch((error: unknown) => {
      console.error(error);
      res.destroy();
    });
  };

async function serve(answer: Answer, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const left = new AbortController();
  res.once("close", () => left.abort());
  const { method = "GET", headers } = req;
  const hasBody = method !== "GET" && method !== "HEAD";
  const request = new Request(new URL(req.url ?? "/", `http://${headers.host}`), {
    method,
    headers: headers as Record<string, string>,
    signal: left.signal,
    ...(hasBody ? { body: Readable.toWeb(req) as ReadableStream, duplex: "half" } : {}),
  });
  const response = await answer(request);
  res.writeHead(response.status, Object.fromEntries(response.headers));
  res.flushHeaders();
  if (response.body === null) res.end();
  else
    Readable.fromWeb(response.body as never)
      .on("error", () => res.destroy())
      .pipe(res);
}
