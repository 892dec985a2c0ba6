/** Web pages of a workload: a public preview of a sandbox whose port is a server of the test's own. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestPlatform } from "../platform.ts";

export interface WorkloadSite extends AsyncDisposable {
  /** The word in the preview's addresses. */
  id: string;
  /** Its address in the path form, without a trailing slash. */
  path: string;
}

let made = 0;

export async function serveWorkload(platform: TestPlatform, listener: RequestListener): Promise<WorkloadSite> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  made += 1;
  const name = `site-${made}`;
  await create(platform, "/sandboxes", { metadata: { name }, spec: {} });
  const preview = await create(platform, `/sandboxes/${name}/previews`, {
    metadata: { name: "web" },
    spec: { port, public: true },
  });
  const address = new URL(preview.spec.url);
  const id = address.pathname.split("/")[3] ?? address.hostname.split(".")[0] ?? "";
  return {
    id,
    path: `/main/previews/${id}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function create(platform: TestPlatform, path: string, body: object) {
  const { status, body: answer } = await platform.call("POST", path, { body, workspace: "main" });
  if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(answer)}`);
  return answer;
}

/** Answers with a page whose script is `script`; beside it, what `others` says by path. */
export const pageWith =
  (
    script: string,
    others: Record<string, { headers?: Record<string, string | string[]>; body: string }> = {},
  ): RequestListener =>
  (request, response) => {
    const path = (request.url ?? "/").split("?")[0] ?? "/";
    const other = others[path];
    if (other) {
      for (const [name, value] of Object.entries(other.headers ?? {})) response.setHeader(name, value);
      response.end(other.body);
    } else
      response
        .setHeader("content-type", "text/html")
        .end(
          `<!doctype html><title>trying</title><body><script>(async()=>{${script}})().then((said)=>{document.title="done: "+said},(error)=>{document.title="failed: "+error})</script>`,
        );
  };
