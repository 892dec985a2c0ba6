/** Answers of the API in which every text that somebody could have chosen tries to be more than text. */
import type { Page } from "playwright-core";

export const HOSTILE: readonly string[] = [
  `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`,
  // Right to left, an end without a beginning, and letters without width.
  "\u202egnp.exe\u202c\u2066\u2069\u200b\u200d\ufeff",
  "x".repeat(10_000),
  "Z\u0351\u036b\u0343a\u030ao\u0302\u0323 \ud83d\udc69\u200d\ud83d\udc69\u200d\ud83d\udc67 \ud800 \u0000 \u2028",
  `javascript:document.title='taken'`,
];

/** Addresses are made of these; a page that asks for another name shows nothing. */
const KEPT = /^(name|id|uid|workspace|plural|kind|code|sub)$/;

/** Replaces texts in the answers to questions below the path, the next one with the next hostile text. */
export async function makeHostile(page: Page, serverUrl: string, path: string): Promise<void> {
  let at = 0;
  const changed = (value: unknown, key: string): unknown => {
    if (typeof value === "string" && !KEPT.test(key)) {
      at += 1;
      return HOSTILE[at % HOSTILE.length];
    }
    if (Array.isArray(value)) return value.map((one) => changed(one, key));
    if (typeof value !== "object" || value === null) return value;
    const members = Object.entries(value).map(([name, member]) => [name, changed(member, name)]);
    return Object.fromEntries(key === "labels" ? [...members, [HOSTILE[0], HOSTILE[3]]] : members);
  };
  await page.route(
    (url) => url.pathname.startsWith(`/v0${path}`),
    async (route) => {
      const { pathname, search } = new URL(route.request().url());
      // Names below `localhost` are known to the browser only.
      const response = await route.fetch({ url: serverUrl + pathname + search });
      if (!(response.headers()["content-type"] ?? "").includes("json")) return route.fulfill({ response });
      const body = (await response.json()) as unknown;
      await route.fulfill({ response, json: changed(body, "") });
    },
  );
}
