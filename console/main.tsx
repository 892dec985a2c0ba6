/** The start: the theme, the session, then the page that the address names. */
import "./ui/tokens.css";
import "./ui/base.css";
import { render } from "preact";
import { isByLink, openSession } from "./api/session.ts";
import { followLinks } from "./lib/location.ts";
import { settings } from "./lib/settings.ts";
import { applyTheme } from "./lib/theme.ts";
import { App } from "./pages/app.tsx";
import { readPageAhead } from "./pages/read-ahead.ts";
import { placeHere } from "./views/places.ts";

const UNPAINTED_MS = 50;

applyTheme();
followLinks(settings.base);
void openSession();
// With a link there is no session before the link was exchanged.
if (!isByLink) readPageAhead(placeHere());
const root = document.getElementById("app");
void framePainted().then(() => {
  if (root) render(<App />, root);
});

/**
 * The page comes with an empty frame. Painting it first costs the program nothing: the first token is on its way
 * meanwhile. A page in the background is not painted.
 */
function framePainted(): Promise<void> {
  return new Promise((resolve) => {
    if (document.hidden) resolve();
    requestAnimationFrame(() => setTimeout(resolve));
    setTimeout(resolve, UNPAINTED_MS);
  });
}
