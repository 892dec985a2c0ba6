/** The guides under docs/, rendered for the browser: where the errors of the gateway and the command line point to. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "../contract/errors.ts";
import { ROOT } from "../lib/root.ts";

const FOLDER = join(ROOT, "docs");
const STYLE = `:root{color-scheme:light dark;font:16px/1.6 system-ui,sans-serif}body{max-width:46rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.6rem}h2{margin-top:2.2rem}code,pre{font:14px/1.5 ui-monospace,monospace}pre{overflow:auto;background:#8881;padding:.8rem;border-radius:6px}
table{border-collapse:collapse;display:block;overflow:auto}td,th{border:1px solid #8884;padding:.3rem .6rem;text-align:left;vertical-align:top}:target{background:#fd06}`;

export interface GuidePages {
  /** The page of one guide; the guides are read and rendered once each. */
  render(name: string): Promise<string>;
}

export function createGuidePages(): GuidePages {
  const pages = new Map<string, Promise<string>>();
  return {
    render(name) {
      if (!/^(?:decisions\/)?[a-z0-9-]{1,60}$/.test(name)) return Promise.reject(unknown(name));
      const known = pages.get(name);
      if (known) return known;
      const page = build(name);
      // Only existing pages are cached: clients can ask for any number of names.
      page.then(() => pages.set(name, page)).catch(() => undefined);
      return page;
    },
  };
}

async function build(name: string): Promise<string> {
  const text = await readFile(join(FOLDER, `${name}.md`), "utf8").catch((error: NodeJS.ErrnoException) => {
    throw error.code === "ENOENT" ? unknown(name) : error;
  });
  // Loaded when the first guide is read: a server that is never asked does not carry it.
  const { Marked } = await import("marked");
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text: heading }) {
        return `<h${depth} id="${anchor(heading)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        return `<a href="${address(href, name)}">${this.parser.parseInline(tokens)}</a>`;
      },
    },
  });
  const title = /^# (.+)$/m.exec(text)?.[1] ?? name;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title} · Berth</title>
<style>${STYLE}</style></head><body><p><a href="/docs">API</a> · <a href="/docs/tour">Tour</a></p>
${await marked.parse(text)}</body></html>`;
}

/** Heading anchors as repository hosts make them, so that links work on both. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

/** Turns a relative link to another guide's file into the address of its page. */
function address(href: string, from: string): string {
  const link = /^([a-z0-9./-]+)\.md(#.*)?$/.exec(href);
  if (!link) return href;
  return `${new URL(link[1] ?? "", `http://guides/docs/${from}`).pathname}${link[2] ?? ""}`;
}

function unknown(name: string): PlatformError {
  return new PlatformError("not_found", `There is no guide ${JSON.stringify(name)}; /docs/tour is a good start.`);
}
