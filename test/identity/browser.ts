/** As much of a browser as signing in takes: cookies with their paths, redirects, forms. */
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
  value: string;
  path: string;
}

const NAVIGATION = { accept: "text/html", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };

export class Browser {
  readonly cookies = new Map<string, Cookie>();
  /** Addresses that are not the platform's: a visit ends there, as it would in a program that waits for the code. */
  readonly #origin: string;
  /** Where the platform listens, when its public address leads elsewhere. */
  readonly #server: string;

  constructor(origin: string, server = origin) {
    this.#origin = origin;
    this.#server = server;
  }

  async visit(address: string, init: Sent = {}): Promise<Page> {
    let url = new URL(address, this.#origin);
    let request = init;
    for (let hops = 0; hops < 10; hops += 1) {
      if (url.origin !== this.#origin) return { url: url.href, status: 0, text: "", headers: {} };
      const { statusCode, headers, body } = await send(new URL(url.pathname + url.search, this.#server), {
        ...request,
        headers: { ...NAVIGATION, cookie: this.#cookiesFor(url.pathname), ...request.headers },
      });
      for (const line of [headers["set-cookie"] ?? []].flat()) this.#keep(line);
      const text = await body.text();
      if (headers.location === undefined) return { url: url.href, status: statusCode, text, headers };
      url = new URL(String(headers.location), url);
      request = {};
    }
    throw new Error("redirected in a circle");
  }

  /** Sends the page's form with these fields, its hidden ones included. */
  submit(page: Page, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Page> {
    const action = /<form[^>]*action="([^"]+)"/.exec(page.text)?.[1] ?? page.url;
    const hidden = [...page.text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(
      ([, name = "", value = ""]) => [name, value] as const,
    );
    return this.visit(new URL(action, page.url).href, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", origin: this.#origin, ...headers },
      body: new URLSearchParams({ ...Object.fromEntries(hidden), ...fields }).toString(),
    });
  }

  #cookiesFor(path: string): string {
    return [...this.cookies]
      .filter(([, cookie]) => path.startsWith(cookie.path))
      .map(([name, { value }]) => `${name}=${value}`)
      .join("; ");
  }

  #keep(line: string): void {
    const [pair = "", ...attributes] = line.split("; ");
    const name = pair.slice(0, pair.indexOf("="));
    const value = pair.slice(pair.indexOf("=") + 1);
    const path = attributes.find((word) => word.toLowerCase().startsWith("path="))?.slice(5) ?? "/";
    if (value === "") this.cookies.delete(name);
    else this.cookies.set(name, { value, path });
  }
}
