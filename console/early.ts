/**
 * Runs before the page is painted and before the program is there: the theme, and the request for the first token, which
 * every other request waits for. A page that was opened by a link has no session yet. The program begins when the frame
 * that the page came with is painted: the token is on its way meanwhile.
 */
{
  /** A page in the background is not painted. */
  const UNPAINTED_MS = 50;
  const root = document.documentElement;
  const theme = localStorage.getItem("console.theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  // The frame of the page is drawn for somebody who was here before; others are asked to sign in.
  if (!localStorage.getItem("console.workspace")) root.dataset.visit = "first";
  if (location.hash === "")
    window.earlyToken = fetch("/console/token", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
      credentials: "same-origin",
    }).catch(() => null);
  const program = document.querySelector<HTMLLinkElement>('link[rel="modulepreload"]')?.href ?? "";
  let isBegun = false;
  const begin = (): void => {
    // The program draws into the page, which has to be there.
    if (isBegun || document.readyState === "loading") return;
    isBegun = true;
    void import(program);
  };
  document.addEventListener("DOMContentLoaded", () => setTimeout(begin, UNPAINTED_MS));
  requestAnimationFrame(() => setTimeout(begin));
  setTimeout(begin, document.hidden ? 0 : UNPAINTED_MS);
}
