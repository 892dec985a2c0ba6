/** The least that a proxy on node:http and undici can do: the reference for the gateway. Argument: upstream port. */
import { createServer } from "node:http";
import { type Dispatcher, Pool } from "undici";

const pool = new Pool(`http://127.0.0.1:${process.argv[2]}`, { connections: 512, pipelining: 1 });
const HOP_BY_HOP = new Set(["connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer"]);

const server = createServer((req, res) => {
  const headers: string[] = [];
  for (let i = 0; i < req.rawHeaders.length; i += 2) {
    const name = req.rawHeaders[i] ?? "";
    if (!HOP_BY_HOP.has(name.toLowerCase())) headers.push(name, req.rawHeaders[i + 1] ?? "");
  }
  const hasBody = req.headers["content-length"] !== undefined || req.headers["transfer-encoding"] !== undefined;
  const handler = {
    onConnect() {},
    onHeaders(status: number, raw: Buffer[], resume: () => void, reason: string): boolean {
      const out: string[] = [];
      for (let i = 0; i < raw.length; i += 2) {
        const name = raw[i]?.toString("latin1") ?? "";
        if (!HOP_BY_HOP.has(name.toLowerCase())) out.push(name, raw[i + 1]?.toString("latin1") ?? "");
      }
      res.writeHead(status, reason, out);
      res.flushHeaders();
      res.on("drain", resume);
      return true;
    },
    onData: (chunk: Buffer): boolean => res.write(chunk),
    onComplete: () => void res.end(),
    onError: (error: Error) => void res.destroy(error),
  };
  const options = { method: req.method, path: req.url, headers, body: hasBody ? req : null };
  pool.dispatch(options as unknown as Dispatcher.DispatchOptions, handler as unknown as Dispatcher.DispatchHandler);
});
server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
