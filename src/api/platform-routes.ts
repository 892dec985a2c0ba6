/** What is not an operation: health, metrics, the contract itself and a page to read it. */
import type { FastifyInstance, FastifyReply } from "fastify";
import type { Registry } from "prom-client";
import type { Authenticator } from "../auth/authenticator.ts";
import { buildOpenApi } from "../contract/openapi.ts";
import type { Operation } from "../contract/operation.ts";
import type { Deps } from "../kinds/port.ts";
import { createGuidePages } from "./guide-pages.ts";
import { requireScraper } from "./metrics-access.ts";
import { scrape } from "./open-metrics.ts";
import { referencePage } from "./reference-page.ts";

export interface PlatformRoutesOptions {
  deps: Deps;
  operations: readonly Operation[];
  registry: Registry;
  authenticator: Authenticator;
}

export function addPlatformRoutes(
  api: FastifyInstance,
  { deps, operations, registry, authenticator }: PlatformRoutesOptions,
): void {
  // Made at the first question: most servers are never asked, and it costs start-up time.
  let openapi: string | null = null;
  api.get("/healthz", async () => ({ status: "ok", version: deps.settings.version }));
  api.get("/readyz", async (_request, reply) => {
    try {
      await deps.store.ping();
      const shortage = deps.disk.shortage();
      if (shortage === null) return { status: "ready" };
      // What runs goes on being served, so a balancer keeps sending requests as long as anything can be written.
      const isDegraded = deps.disk.canWrite();
      const status = isDegraded ? "degraded" : "unavailable";
      return reply.code(isDegraded ? 200 : 503).send({ status, reason: `New work is refused. ${shortage}` });
    } catch (error) {
      deps.log.warn({ err: error }, "the database does not answer");
      return reply.code(503).send({ status: "unavailable", reason: "the database does not answer" });
    }
  });
  api.get("/metrics", async (request, reply) => {
    await requireScraper(request, authenticator);
    const { contentType, text } = await scrape(registry, request.headers.accept);
    return reply.header("content-type", contentType).send(text);
  });
  api.get("/openapi.json", async (_request, reply) => {
    openapi ??= JSON.stringify(
      buildOpenApi(operations, {
        version: deps.settings.version,
        brand: deps.settings.brand,
        serverUrl: deps.settings.publicUrl,
      }),
    );
    return reply.header("content-type", "application/json; charset=utf-8").send(openapi);
  });
  const guides = createGuidePages();
  const page = (reply: FastifyReply, html: string): FastifyReply =>
    reply
      .header("content-type", "text/html; charset=utf-8")
      .header("content-security-policy", "default-src 'self' 'unsafe-inline'")
      .send(html);
  api.get("/docs", async (_request, reply) => page(reply, referencePage));
  api.get<{ Params: { "*": string } }>("/docs/*", async ({ params }, reply) =>
    page(reply, await guides.render(params["*"])),
  );
}
