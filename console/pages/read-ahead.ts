/**
 * Begins the requests of the page that the address names before anything is drawn: the rows or the resource first, then
 * what the frame around them shows. The program of a tab is loaded meanwhile.
 */
import { askMe, askOverview } from "../api/overview.ts";
import { askRows } from "../api/pages.ts";
import { readAhead } from "../api/query.ts";
import { askResource } from "../api/resources.ts";
import { askWorkspaces } from "../api/workspaces.ts";
import { queryOf } from "../lib/location.ts";
import type { Place } from "../lib/places.ts";
import { OWN_TABS } from "./item/own-tabs.ts";
import { listQuery } from "./list/list-query.ts";

export function readPageAhead(place: Place): void {
  if (place.page !== "start") {
    const { workspace } = place;
    if (place.page === "list") askRows(workspace, place, listQuery(), queryOf("from"));
    if (place.page === "item") {
      readAhead(askResource(workspace, place, place.name));
      const tab = OWN_TABS[place.kind.name]?.find(({ id }) => id === queryOf("tab"));
      // The tab itself says when it could not be loaded.
      tab?.Page.preload().catch(() => {});
    }
    readAhead(askMe(workspace));
    readAhead(askOverview(workspace));
  }
  readAhead(askWorkspaces());
}
