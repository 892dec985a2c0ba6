/** The frame around every page: navigation, the way back, search, keys. */
import "./shell.css";
import { useEffect } from "preact/hooks";
import { listen } from "../../api/live.ts";
import { here } from "../../lib/location.ts";
import type { InsidePlace } from "../../lib/places.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { PageOf } from "../page-of.tsx";
import { Crumbs } from "./crumbs.tsx";
import { Keys, listenForKeys, openKeys, openPalette } from "./keys.tsx";
import { Palette } from "./palette.tsx";
import { isMenuOpen, Side } from "./side.tsx";

export function Shell({ place }: { place: InsidePlace }) {
  useEffect(() => listenForKeys(), []);
  const { workspace } = place;
  useEffect(() => listen(workspace), [workspace]);
  const { pathname } = here.value;
  useEffect(() => {
    isMenuOpen.value = false;
  }, [pathname]);
  return (
    <div class="shell">
      <Side place={place} />
      <div>
        <header class="bar">
          <span class="menu-open">
            <Button kind="bare" isIcon label="Menu" onClick={() => (isMenuOpen.value = !isMenuOpen.value)}>
              <Icon name="menu" />
            </Button>
          </span>
          <Crumbs place={place} />
          <Button onClick={openPalette}>
            <Icon name="search" />
            <span class="search-open">Search or run</span>
            <kbd class="wide">Ctrl K</kbd>
          </Button>
          <span class="wide">
            <Button kind="bare" isIcon label="Keys" onClick={openKeys}>
              ?
            </Button>
          </span>
        </header>
        <main class="content" key={pathname}>
          <PageOf place={place} />
        </main>
      </div>
      <Palette workspace={place.workspace} />
      <Keys />
    </div>
  );
}
