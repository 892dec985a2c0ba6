/** The addresses of the console: its page at every path of its own, its files, and a word to whoever asks elsewhere. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { messagePage, pageHeaders } from "../../auth/pages/layout.ts";
import { PlatformError } from "../../contract/errors.ts";
import { isReservedWord } from "../../contract/reserved-words.ts";
import { randomSecret } from "../../lib/ids.ts";
import { isAt } from "../page-host.ts";
import { type Bundle, consoleBundle } from "./bundle.ts";
import { ASSETS, type ShellSettings, shellHeaders, shellPage } from "./shell.ts";

export interface ConsoleRoutesOptions {
  settings(): ShellSettings;
  /** Where the bundle is built when the installation cannot be written to. */
  cacheFolder: string;
  log: { warn(fields: object, message: string): void };
}

export function addConsoleRoutes(api: FastifyInstance, { settings, cacheFolder, log }: ConsoleRoutesOptions): void {
  let bundle: Promise<Bundle> | null = null;
  /** A build that failed is tried again at the next visit, and a folder that somebody removed is built again. */
  const ready = async (): Promise<Bundle> => {
    const known = await bundle;
    if (known !== null && !existsSync(known.folder)) bundle = null;
    bundle ??= consoleBundle(cacheFolder).catch((error: unknown) => {
      bundle = null;
      log.warn({ err: error }, "the console cannot be built");
      throw new PlatformError("unavailable", `The console cannot be built: ${firstLine(error)}`);
    });
    return bundle;
  };
  const shell = async (reply: FastifyReply): Promise<FastifyReply> => {
    try {
      const nonce = randomSecret();
      return reply.headers(shellHeaders(settings(), nonce)).send(shellPage(await ready(), settings(), nonce));
    } catch (error) {
      const text = `${firstLine(error)} The API and the command line work as ever.`;
      return reply
        .code(503)
        .headers(pageHeaders())
        .send(messagePage("No console here", text, DOCS));
    }
  };

  api.get("/", (request, reply) => {
    if (isNavigation(request) && isAt(request, settings().pagesUrl)) return shell(reply);
    return elsewhere(request, reply, settings());
  });
  // Every page of the console begins with a workspace, whose name is never a word of the platform.
  for (const path of ["/:first", "/:first/*", "/console", "/console/*"])
    api.get<{ Params: { first?: string } }>(path, (request, reply) => {
      const { base, pagesUrl } = settings();
      const { first } = request.params;
      const isOwn = base === "" ? first !== undefined && !isReservedWord(first) : first === undefined;
      if (!isOwn || !isNavigation(request) || !isAt(request, pagesUrl)) return reply.callNotFound();
      return shell(reply);
    });

  api.get<{ Params: { name: string } }>(`${ASSETS}/:name`, async (request, reply) => {
    const { folder } = await ready();
    const { name } = request.params;
    const [, type = ""] = /^[\w.-]+-\w+\.(js|css|svg)$/.exec(name) ?? [];
    const encoding = /\bbr\b/.test(request.headers["accept-encoding"] ?? "") ? "br" : "gzip";
    const file = join(folder, `${name}${encoding === "br" ? ".br" : ".gz"}`);
    const content = type === "" ? null : await readFile(file).catch(() => null);
    if (content === null)
      throw new PlatformError("not_found", "There is no such file of the console. Load the page again.");
    return reply.headers({ ...ASSET_HEADERS, "content-type": TYPES[type], "content-encoding": encoding }).send(content);
  });
}

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

/** Names contain a hash of the content, so a file never changes. */
const ASSET_HEADERS = {
  "cache-control": "public, max-age=31536000, immutable",
  vary: "accept-encoding",
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; sandbox",
  "cross-origin-resource-policy": "same-origin",
};

const DOCS = { href: "/docs", label: "Reference" };

function elsewhere(
  request: FastifyRequest,
  reply: FastifyReply,
  { pagesUrl, publicUrl, version }: ShellSettings,
): FastifyReply {
  reply.header("vary", "accept");
  if (!isNavigation(request))
    return reply.send({ name: "berth", version, api: `${publicUrl}/v0`, console: pagesUrl, docs: `${pagesUrl}/docs` });
  const text = `This is the address for programs. People find the console at ${pagesUrl}.`;
  return reply.headers(pageHeaders()).send(messagePage("Berth", text, { href: pagesUrl, label: "Open the console" }));
}

export const isNavigation = ({ headers }: FastifyRequest): boolean => /\btext\/html\b/i.test(headers.accept ?? "");

const firstLine = (error: unknown): string => String((error as Error).message).split("\n")[0] ?? "";
