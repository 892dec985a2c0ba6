/**
 * Runs before the page is painted and before the program is there: the theme, and the request for the first token, which
 * every other request waits for. A page that was opened by a link has no session yet.
 */
{
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
}
