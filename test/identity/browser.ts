/**
 * As much of a browser as signing in takes: cookies with their hosts and paths, redirects, forms. Every address of the
 * platform, whatever its host name, is dialled on this machine.
 */
import { request as send } from "undici";

export interface Page {
  url: string;
  status: number;
  text: string;
  headers: Record<string, string | string[] | undefined>;
}

interface Sent {
  method?: "GET" | "POST";
  headers?: Record<string, string>;
  body?: string;
}

interface Cookie {
  name: string;
  value: string;
  host: string;
  path: string;
}

const NAVIGATION = { accept: "text/html", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };

export class Browser {
  /** By host, path and name. */
  readonly cookies = new Map<string, Cookie>();
  readonly #origin: URL;
  /** Where the platform listens, when its public address leads elsewhere. */
  readonly #server: string | undefined;

  constructor(origin: string, server?: string) {
    this.#origin = new URL(origin);
    this.#server = server;
  }

  /** A visit ends at addresses that are not the platform's, as it would in a program that waits for the code. */
  async visit(address: string, init: Sent = {}): Promise<Page> {
    let url = new URL(address, this.#origin);
    let request = init;
    for (let hops = 0; hops < 12; hops += 1) {
      if (!this.#isPlatform(url)) return { url: url.href, status: 0, text: "", headers: {} };
      const dialled = new URL(url.pathname + url.search, this.#server ?? `http://127.0.0.1:${url.port}`);
      const { statusCode, headers, body } = await send(dialled, {
        ...request,
        headers: { ...NAVIGATION, host: url.host, cookie: this.#cookiesFor(url), ...request.headers },
      });
      for (const line of [headers["set-cookie"] ?? []].flat()) this.#keep(line, url.hostname);
      const text = await body.text();
      const next = headers.location ?? /<meta http-equiv="refresh" content="0;url=([^"]+)">/.exec(text)?.[1];
      if (next === undefined) return { url: url.href, status: statusCode, text, headers };
      url = new URL(unescapeHtml(String(next)), url);
      request = {};
    }
    throw new Error("redirected in a circle");
  }

  /** Sends the page's form with these fields beside those that are filled in; `nth` counts the page's forms. */
  submit(page: Page, fields: Record<string, string>, headers: Record<string, string> = {}, nth = 0): Promise<Page> {
    const form = [...page.text.matchAll(/<form[^>]*>[\s\S]*?<\/form>/g)][nth]?.[0] ?? "";
    const action = /<form[^>]*action="([^"]+)"/.exec(form)?.[1] ?? page.url;
    const filled = [...form.matchAll(/<input[^>]*? name="([^"]+)"[^>]*? value="([^"]*)"/g)].map(
      ([, name = "", value = ""]) => [name, unescapeHtml(value)] as const,
    );
    return this.visit(new URL(unescapeHtml(action), page.url).href, {
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        origin: new URL(page.url).origin,
        ...headers,
      },
      body: new URLSearchParams({ ...Object.fromEntries(filled), ...fields }).toString(),
    });
  }

  /** The first cookie whose name ends so. */
  cookie(end: string): Cookie | undefined {
    return [...this.cookies.values()].find(({ name }) => name.endsWith(end));
  }

  forget(end: string): void {
    for (const [key, { name }] of this.cookies) if (name.endsWith(end)) this.cookies.delete(key);
  }

  #isPlatform({ port, hostname }: URL): boolean {
    return port === this.#origin.port && (hostname === this.#origin.hostname || hostname.startsWith("console."));
  }

  #cookiesFor({ hostname, pathname }: URL): string {
    return [...this.cookies.values()]
      .filter(
        ({ host, path }) => host === hostname && (pathname === path || pathname.startsWith(path.replace(/\/?$/, "/"))),
      )
      .map(({ name, value }) => `${name}=${value}`)
      .join("; ");
  }

  #keep(line: string, host: string): void {
    const [pair = "", ...attributes] = line.split("; ");
    const name = pair.slice(0, pair.indexOf("="));
    const value = pair.slice(pair.indexOf("=") + 1);
    const path = attributes.find((word) => word.toLowerCase().startsWith("path="))?.slice(5) ?? "/";
    const key = `${host} ${path} ${name}`;
    if (value === "") this.cookies.delete(key);
    else this.cookies.set(key, { name, value, host, path });
  }
}

const unescapeHtml = (text: string): string =>
  text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code))).replaceAll("&amp;", "&");
