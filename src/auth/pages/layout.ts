/** The frame of every page for people: plain HTML with one style and no external resources. */
import { createHash } from "node:crypto";

const STYLE = `:root{color-scheme:light dark;--ground:#f4f5f7;--card:#fff;--line:#d8dce1;--edge:#8b949e;--text:#1b1f24;--quiet:#59636e;--accent:#1f6feb;--wrong:#b42318}
@media(prefers-color-scheme:dark){:root{--ground:#0d1117;--card:#161b22;--line:#30363d;--edge:#6e7681;--text:#e6edf3;--quiet:#9198a1;--wrong:#ff7b72}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;margin:0;padding:1rem;background:var(--ground);color:var(--text);display:grid;min-height:100vh;place-items:center;overflow-wrap:anywhere}
main{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:2rem;width:100%;max-width:26rem}
h1{font-size:1.25rem;line-height:1.3;margin:0 0 1rem}h2{font-size:1rem;margin:2rem 0 .5rem}p{margin:0 0 1rem}
form{margin:1.25rem 0 0}label{display:block;margin:1rem 0 .25rem}
input:not([type=hidden]){font:inherit;width:100%;padding:.5rem .625rem;border:1px solid var(--edge);border-radius:6px;background:var(--card);color:inherit}
input[aria-invalid]{border-color:var(--wrong)}
.row{display:flex;flex-wrap:wrap;gap:.5rem;margin-top:1.5rem}
button,a.button{font:inherit;line-height:1.5;padding:.5rem 1rem;border-radius:6px;border:1px solid var(--accent);background:var(--accent);color:#fff;cursor:pointer;text-decoration:none;overflow-wrap:break-word}
button.plain,a.plain{background:transparent;color:inherit;border-color:var(--edge)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.wrong{color:var(--wrong)}.quiet{color:var(--quiet);font-size:.875rem}input+.quiet{margin:.25rem 0 0}
code{font-size:1.1em;letter-spacing:.1em}kbd{font:.875rem/1.5 ui-monospace,monospace;display:block;padding:.5rem .625rem;border:1px solid var(--line);border-radius:6px}
ul{list-style:none;margin:0;padding:0}li{display:flex;gap:1rem;align-items:center;justify-content:space-between;padding:.75rem 0;border-top:1px solid var(--line)}
li form{margin:0;flex:none}li p{margin:0}`;

const hashOf = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const STYLE_HASH = hashOf(STYLE);

/** Headers of every page. Forms may target the platform only; redirects elsewhere use `onwardPage`. */
export const pageHeaders = (script?: string): Record<string, string> => ({
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy": `default-src 'none'; style-src ${STYLE_HASH}; ${script === undefined ? "" : `script-src ${hashOf(script)}; `}form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  // With "no-referrer" browsers send `Origin: null` with the platform's own forms, like those of a foreign page.
  "referrer-policy": "same-origin",
  // A workload's page that opens this page in a window must not be able to read it.
  "cross-origin-opener-policy": "same-origin",
});

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

/** `content` is HTML; the caller has escaped all outside text in it. */
export const page = (title: string, content: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${escapeHtml(title)}</title><style>${STYLE}</style></head>
<body><main><h1>${escapeHtml(title)}</h1>${content}</main></body></html>`;

/** A link to continue at, on a page that reports a failure. */
export interface Onward {
  href: string;
  label: string;
}

export const messagePage = (title: string, text: string, onward: Onward | null = null): string =>
  page(title, `<p>${escapeHtml(text)}</p>${onward === null ? "" : row(linkTo(onward))}`);

export const linkTo = ({ href, label }: Onward, kind = "plain"): string =>
  `<a class="button ${kind}" href="${escapeHtml(href)}">${escapeHtml(label)}</a>`;

export const row = (...buttons: string[]): string => `<div class="row">${buttons.join("")}</div>`;

export const button = (label: string, more = ""): string => `<button${more}>${escapeHtml(label)}</button>`;
export const plainButton = (label: string, more = ""): string => button(label, ` class="plain"${more}`);

export const hidden = (name: string, value: string): string =>
  `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;

export const alert = (text: string | null, id = "wrong"): string =>
  text === null ? "" : `<p class="wrong" role="alert" id="${id}">${escapeHtml(text)}</p>`;

export interface Field {
  name: string;
  label: string;
  type: "email" | "password" | "text";
  autocomplete: string;
  maxLength: number;
  value?: string;
  /** Text below the field. */
  hint?: string;
  isReadOnly?: boolean;
  /** Whether the alert of the page is about this field. */
  isWrong?: boolean;
  isFirst?: boolean;
}

export function field({ name, label, type, autocomplete, maxLength, value = "", ...more }: Field): string {
  const described = [...(more.isWrong ? ["wrong"] : []), ...(more.hint === undefined ? [] : [`${name}-hint`])];
  const attributes = [
    `id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" required maxlength="${maxLength}"`,
    `value="${escapeHtml(value)}"`,
    ...(more.isReadOnly ? ["readonly"] : []),
    ...(more.isFirst ? ["autofocus"] : []),
    ...(more.isWrong ? ['aria-invalid="true"'] : []),
    ...(described.length === 0 ? [] : [`aria-describedby="${described.join(" ")}"`]),
  ].join(" ");
  const hint = more.hint === undefined ? "" : `<p class="quiet" id="${name}-hint">${escapeHtml(more.hint)}</p>`;
  return `<label for="${name}">${escapeHtml(label)}</label><input ${attributes}>${hint}`;
}
