/** The start: the theme, the session, then the page that the address names. */
import "./ui/tokens.css";
import "./ui/base.css";
import { render } from "preact";
import { openSession } from "./api/session.ts";
import { followLinks } from "./lib/location.ts";
import { settings } from "./lib/settings.ts";
import { applyTheme } from "./lib/theme.ts";
import { App } from "./pages/app.tsx";

applyTheme();
followLinks(settings.base);
const root = document.getElementById("app");
if (root) render(<App />, root);
void openSession();
