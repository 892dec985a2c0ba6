/** How requests of people's browsers come to a page: at the pages' own address, by navigation, in the browser's name. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { AnonymousLimit } from "../auth/oauth/anonymous-limit.ts";
import type { Exchange } from "../auth/oauth/browser-session.ts";
import { askedFrom } from "../auth/oauth/client-document.ts";
import { requireNavigation, rewrite } from "../auth/oauth/request.ts";
import { identifyBrowser, inBrowser } from "../auth/oauth/step-binding.ts";
import { messagePage, pageHeaders } from "../auth/pages/layout.ts";
import { errorResponse } from "./error-response.ts";
import { type CurrentProvider, type OauthRoutesOptions, originOf } from "./oauth-exchange.ts";
import { isAt } from "./page-host.ts";

const BODY_BYTES_MAX = 16 * 1024;

export type PageDoor = ReturnType<typeof createPageDoor>;

export function createPageDoor(options: OauthRoutesOptions, currentProvider: CurrentProvider, limit: AnonymousLimit) {
  const { pagesUrl, brand } = options;
  /** Pages are shown at their own address; whoever comes by another is led there. */
  const guard = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    if (!isAt(request, pagesUrl()) && (request.method === "GET" || request.method === "HEAD"))
      return reply.header("cache-control", "no-store").redirect(`${pagesUrl()}${request.raw.url ?? ""}`, 303);
    requireNavigation(request.raw, pagesUrl());
    return undefined;
  };
  const countWrite = async (request: FastifyRequest): Promise<void> => limit(originOf(request).address);

  return {
    person: { onRequest: guard, bodyLimit: BODY_BYTES_MAX },
    /** For addresses that write something before anybody has signed in. */
    stranger: { onRequest: [guard, countWrite], bodyLimit: BODY_BYTES_MAX },

    /** From here on the answer is written by hand, and so is that of a failure. */
    async step(
      request: FastifyRequest,
      reply: FastifyReply,
      work: (exchange: Exchange) => Promise<void> | void,
    ): Promise<void> {
      const provider = await currentProvider();
      const rewritten = rewrite(request.raw, {
        issuer: pagesUrl(),
        url: request.raw.url ?? "",
        form: null,
        origin: originOf(request),
      });
      reply.hijack();
      reply.raw.setHeader("x-request-id", request.id);
      const { id, setCookie } = identifyBrowser(request.headers.cookie, brand, pagesUrl().startsWith("https:"));
      if (setCookie !== null) reply.raw.appendHeader("set-cookie", setCookie);
      try {
        await askedFrom(originOf(request).address, () =>
          inBrowser({ id, userCode: null }, () => work({ provider, request: rewritten, response: reply.raw })),
        );
      } catch (error) {
        const { status, body, unexpected } = errorResponse(error);
        if (unexpected) options.log.warn({ err: error, requestId: request.id }, "a page failed");
        reply.raw.writeHead(status, pageHeaders()).end(messagePage("That did not work", String(body.message)));
      }
    },
  };
}

export const queryOf = ({ raw }: FastifyRequest): string => raw.url?.match(/\?.*$/s)?.[0] ?? "";
