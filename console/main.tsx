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

applyTheme();
followLinks(settings.base);
void openSession();
// With a link there is no session before the link was exchanged.
if (!isByLink) readPageAhead(placeHere());
const root = document.getElementById("app");
if (root) render(<App />, root);
