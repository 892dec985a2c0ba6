/** A page without a framework that loads as many bytes of script and style as the console's first page. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const ROWS = 50;

export async function startStaticPage(bytes: number): Promise<AsyncDisposable & { url: string }> {
  // Statements that a browser must parse, as it must those of a program.
  const line = "function f(a,b){return a>b?f(b,a):a+b}";
  const script = `${line.repeat(Math.ceil(bytes / line.length)).replaceAll("function f(", () => `function f${next()}(`)}`;
  const rows = Array.from({ length: ROWS }, (_, at) => `<tr><td>row ${at}</td><td>DEPLOYED</td></tr>`).join("");
  const html = `<!doctype html><title>static</title><script src="/script.js" defer></script><h1>Static</h1><table>${rows}</table>`;
  const server = createServer((request, response) => {
    const isScript = request.url === "/script.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.setHeader("cache-control", isScript ? "public, max-age=31536000, immutable" : "no-store");
    response.end(isScript ? script : html);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await once(server.close(), "close");
    },
  };
}

let names = 0;
const next = (): number => {
  names += 1;
  return names;
};
