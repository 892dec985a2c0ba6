/** Where the page is, and the way back up. */
import { useLayoutEffect } from "preact/hooks";
import { queryOf } from "../../lib/location.ts";
import type { InsidePlace } from "../../lib/places.ts";
import { titleOf } from "../../lib/titles.ts";
import { places } from "../../views/places.ts";

const PRODUCT = "Berth";

interface Crumb {
  title: string;
  href: string;
}

export function Crumbs({ place }: { place: InsidePlace }) {
  const crumbs = crumbsOf(place);
  useTitle(crumbs);
  return (
    <nav class="crumbs" aria-label="Where you are">
      {crumbs.map(({ title, href }, at) =>
        at === crumbs.length - 1 ? (
          <span key={href} aria-current="page">
            {title}
          </span>
        ) : (
          <>
            <a key={href} href={href}>
              {title}
            </a>
            <span class="quiet" aria-hidden="true">
              /
            </span>
          </>
        ),
      )}
    </nav>
  );
}

/** Tabs, bookmarks and the history tell pages apart by their title: `box · Sandboxes · main · Berth`. */
function useTitle(crumbs: readonly Crumb[]): void {
  const title = [...crumbs.map((crumb) => crumb.title).reverse(), PRODUCT].join(" · ");
  useLayoutEffect(() => {
    document.title = title;
    return () => {
      document.title = PRODUCT;
    };
  }, [title]);
}

function crumbsOf(place: InsidePlace): Crumb[] {
  const { workspace } = place;
  const home = { title: workspace, href: places.home(workspace) };
  if (place.page === "home") return [home];
  if (place.page === "nowhere") return [home, { title: "Nowhere", href: "" }];
  if (place.page !== "list" && place.page !== "item" && place.page !== "new")
    return [
      home,
      { title: titleOf(place.page), href: places.page(workspace, place.page) },
      ...(place.page === "images" && queryOf("image") !== "" ? [{ title: queryOf("image"), href: "here" }] : []),
    ];
  const line = places.lineOf(place.kind).flatMap((kind, at): Crumb[] => {
    const collection = { kind, parents: place.parents.slice(0, at) };
    const name = place.parents[at];
    const list = { title: titleOf(kind.plural), href: places.list(workspace, collection) };
    return name === undefined ? [list] : [list, { title: name, href: places.item(workspace, collection, name) }];
  });
  if (place.page === "list") return [home, ...line];
  return [home, ...line, { title: place.page === "item" ? place.name : "New", href: "here" }];
}
