/** The one page of the console: no inline script, nothing from elsewhere. The program that it loads does the rest. */
import { escapeHtml } from "../../auth/pages/layout.ts";
import type { Bundle } from "./bundle.ts";

export const ASSETS = "/console/assets";

export interface ShellSettings {
  /** Origin of the console. */
  pagesUrl: string;
  /** Address of the platform, at which workloads are called. */
  publicUrl: string;
  /** The path that the console's own paths begin with: "" on a host of its own. */
  base: string;
  brand: string;
  version: string;
  /** Origins of previews, which the console may show in a frame. */
  frames: readonly string[];
}

/** The frame of every page, which is painted before the program runs; the program goes on with these elements. */
const FRAME =
  '<div class="shell"><aside class="side"><a class="brand"><svg width="18" height="18" viewBox="0 0 32 32" fill="none" stroke="currentColor" stroke-width="3" stroke-linecap="round" aria-hidden="true"><path d="M16 9.600v17M11 14h10M5 18.500c.8 4.800 5.200 8 11 8s10.200-3.200 11-8"/><circle cx="16" cy="6.500" r="3"/></svg>Berth</a></aside><div><header class="bar"></header><main class="content"></main></div></div>';

export function shellPage({ script, early, style, icon }: Bundle, settings: ShellSettings, nonce: string): string {
  const { base, publicUrl, brand, version } = settings;
  const told = escapeHtml(JSON.stringify({ base, publicUrl, brand, version }));
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="console" content="${told}"><meta property="csp-nonce" nonce="${nonce}">
<title>Berth</title><link rel="icon" href="${ASSETS}/${icon}" type="image/svg+xml">
<link rel="stylesheet" href="${ASSETS}/${style}"><link rel="modulepreload" href="${ASSETS}/${script}"><script src="${ASSETS}/${early}"></script></head>
<body><div id="app">${FRAME}</div><noscript>The console needs JavaScript. The command line and the API do not.</noscript></body></html>`;
}

/** Styles with the nonce are those that the terminal writes while it runs. */
export function shellHeaders({ pagesUrl, publicUrl, frames }: ShellSettings, nonce: string): Record<string, string> {
  const assets = `${pagesUrl}${ASSETS}/`;
  const policy = {
    "default-src": ["'none'"],
    "script-src": [assets],
    "style-src": [assets, `'nonce-${nonce}'`],
    "img-src": [assets, "data:", "blob:"],
    "connect-src": ["'self'", publicUrl, publicUrl.replace(/^http/, "ws")],
    "frame-src": frames.length === 0 ? ["'none'"] : frames,
    "form-action": ["'none'"],
    "frame-ancestors": ["'none'"],
    "base-uri": ["'none'"],
    "require-trusted-types-for": ["'script'"],
    "trusted-types": ["'none'"],
  };
  return {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": Object.entries(policy)
      .map(([name, values]) => `${name} ${values.join(" ")}`)
      .join("; "),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
  };
}
