/** What is not an operation: health, metrics, the contract itself and a page to read it. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Registry } from "prom-client";
import type { Authenticator } from "../auth/authenticator.ts";
import { buildOpenApi } from "../contract/openapi.ts";
import { withComponents } from "../contract/openapi-components.ts";
import type { Operation } from "../contract/operation.ts";
import type { Platform } from "../kinds/port.ts";
import { isNavigation } from "./console/console-routes.ts";
import { createGuidePages } from "./guide-pages.ts";
import { requireScraper } from "./metrics-access.ts";
import { scrape } from "./open-metrics.ts";
import { isAt } from "./page-host.ts";
import { referencePage } from "./reference-page.ts";

export interface PlatformRoutesOptions {
  deps: Platform;
  operations: readonly Operation[];
  registry: Registry;
  authenticator: Authenticator;
  /** Says that edge processes are missing; null when all serve. Absent where the server has none. */
  edgeShortage?: () => string | null;
  /** Origin of the pages for people. */
  pagesUrl(): string;
}

export function addPlatformRoutes(api: FastifyInstance, options: PlatformRoutesOptions): void {
  const { deps, operations, registry, authenticator, pagesUrl, edgeShortage } = options;
  // Made at the first question: most servers are never asked, and it costs start-up time.
  let openapi: string | null = null;
  api.get("/healthz", async () => ({ status: "ok", version: deps.settings.version }));
  api.get("/readyz", async (_request, reply) => {
    try {
      await deps.store.ping();
      const shortage = deps.here.disk.shortage();
      const edges = edgeShortage?.() ?? null;
      // The others, or the server itself, take the connections.
      if (shortage === null) return edges === null ? { status: "ready" } : { status: "degraded", reason: edges };
      // What runs goes on being served, so a balancer keeps sending requests as long as anything can be written.
      const isDegraded = deps.here.disk.canWrite();
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
      withComponents(
        buildOpenApi(operations, {
          version: deps.settings.version,
          brand: deps.settings.brand,
          serverUrl: deps.settings.publicUrl,
        }),
      ),
    );
    return reply.header("content-type", "application/json; charset=utf-8").send(openapi);
  });
  const guides = createGuidePages();
  const page = async (request: FastifyRequest, reply: FastifyReply, html: () => Promise<string>) => {
    // Only browsers resolve console.localhost; other programs may read the page where they are.
    if (isNavigation(request) && !isAt(request, pagesUrl()))
      return reply.redirect(`${pagesUrl()}${request.raw.url ?? ""}`, 303);
    return reply.headers(PAGE_HEADERS).send(await html());
  };
  api.get("/docs", (request, reply) => page(request, reply, async () => referencePage));
  api.get<{ Params: { "*": string } }>("/docs/*", (request, reply) =>
    page(request, reply, () => guides.render(request.params["*"])),
  );
}

const PAGE_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": "default-src 'self' 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
  "cross-origin-opener-policy": "same-origin",
  "x-content-type-options": "nosniff",
};
