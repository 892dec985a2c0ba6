/** The address of the page, as a signal. Links are ordinary `<a>`; clicks on those of the console stay in the page. */
import { signal } from "@preact/signals";

const read = (): URL => new URL(location.href);

export const here = signal(read());

export function go(path: string, how: "push" | "replace" = "push"): void {
  if (how === "push") history.pushState(null, "", path);
  else history.replaceState(null, "", path);
  here.value = read();
}

/** Changes members of the query in place; an empty value removes the member. */
export function setQuery(changes: Readonly<Record<string, string>>): void {
  const url = read();
  for (const [name, value] of Object.entries(changes))
    if (value === "") url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  go(url.pathname + url.search, "replace");
}

export const queryOf = (name: string): string => here.value.searchParams.get(name) ?? "";

/** Addresses that the server answers with pages of its own. */
const ELSEWHERE = /^\/(oauth|docs|v0|console\/(?!-))/;

export function followLinks(base: string): void {
  addEventListener("popstate", () => {
    here.value = read();
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !isPlain || event.defaultPrevented || link.target !== "" || link.hasAttribute("download")) return;
    const isOwn = link.origin === location.origin && link.pathname.startsWith(`${base}/`);
    if (!isOwn || (base === "" && ELSEWHERE.test(link.pathname))) return;
    event.preventDefault();
    go(link.pathname + link.search);
    scrollTo(0, 0);
  });
}
