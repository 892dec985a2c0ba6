/** The component of each place. A page of its own comes before the general one of its kind. */
import type { InsidePlace } from "../lib/places.ts";
import { LinkButton } from "../ui/button.tsx";
import { lazy } from "../ui/lazy.tsx";
import { Blank } from "../ui/notice.tsx";
import { places } from "../views/places.ts";
import { NewPage } from "./create/new-page.tsx";
import { HomePage } from "./home/home-page.tsx";
import { ItemPage } from "./item/item-page.tsx";
import { ListPage } from "./list/list-page.tsx";

const TemplatesPage = lazy(async () => (await import("./templates/templates-page.tsx")).TemplatesPage);
const SettingsPage = lazy(async () => (await import("./settings/settings-page.tsx")).SettingsPage);
const LogsPage = lazy(async () => (await import("./logs/logs-page.tsx")).LogsPage);
const ImagesPage = lazy(async () => (await import("./images/images-page.tsx")).ImagesPage);
const EgressPage = lazy(async () => (await import("./egress/egress-page.tsx")).EgressPage);
const NodesPage = lazy(async () => (await import("./nodes/nodes-page.tsx")).NodesPage);
const UsagePage = lazy(async () => (await import("./usage/usage-page.tsx")).UsagePage);
const AccessPage = lazy(async () => (await import("./access/access-page.tsx")).AccessPage);

export function PageOf({ place }: { place: InsidePlace }) {
  switch (place.page) {
    case "home":
      return <HomePage workspace={place.workspace} />;
    case "list":
      return <ListPage {...place} />;
    case "item":
      return <ItemPage {...place} />;
    case "new":
      return <NewPage {...place} />;
    case "templates":
      return <TemplatesPage workspace={place.workspace} />;
    case "settings":
      return <SettingsPage workspace={place.workspace} />;
    case "images":
      return <ImagesPage workspace={place.workspace} />;
    case "nodes":
      return <NodesPage workspace={place.workspace} />;
    case "egress":
      return <EgressPage workspace={place.workspace} />;
    case "logs":
      return <LogsPage workspace={place.workspace} />;
    case "usage":
      return <UsagePage workspace={place.workspace} />;
    case "access":
      return <AccessPage workspace={place.workspace} />;
    default:
      return (
        <>
          <h1>Nowhere</h1>
          <Blank title="There is nothing at this address" text="The link may be old, or mistyped.">
            <LinkButton kind="main" href={places.home(place.workspace)}>
              Go home
            </LinkButton>
          </Blank>
        </>
      );
  }
}
