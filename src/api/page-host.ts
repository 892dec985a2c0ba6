/** The host that people's pages are on: which requests came to it. */
import type { FastifyRequest } from "fastify";

/** True when the request was sent to the origin of the pages, as far as its host tells. */
export const isAt = ({ host }: FastifyRequest, pagesUrl: string): boolean =>
  host.toLowerCase() === new URL(pagesUrl).host;
