/** The navigation: workspaces, kinds with their counts, and what belongs to the person. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useMe, useOverview } from "../../api/overview.ts";
import { signOut } from "../../api/session.ts";
import { useWorkspaces } from "../../api/workspaces.ts";
import { go } from "../../lib/location.ts";
import type { InsidePlace } from "../../lib/places.ts";
import { settings } from "../../lib/settings.ts";
import { nextTheme, theme } from "../../lib/theme.ts";
import { titleOf } from "../../lib/titles.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { type Entry, GROUPS } from "../../views/navigation.ts";
import { kindNamed, places, top } from "../../views/places.ts";
import { lastWorkspace } from "../last-workspace.ts";

export const isMenuOpen = signal(false);

export function Side({ place }: { place: InsidePlace }) {
  const { workspace } = place;
  const counts = useCounts(workspace);
  const { data: me } = useMe(workspace);
  useEffect(() => {
    lastWorkspace.value = workspace;
  }, [workspace]);
  return (
    <aside class={`side${isMenuOpen.value ? " open" : ""}`}>
      <a class="brand" href={places.home(workspace)}>
        <Anchor />
        Berth
      </a>
      <Switcher workspace={workspace} />
      <nav aria-label="Main">
        <Home place={place} />
      </nav>
      {GROUPS.map(({ title, entries }) => (
        <nav class="nav-group" key={title} aria-label={title}>
          <h2>{title}</h2>
          {entries.map((entry) => (
            <NavLink key={"kind" in entry ? entry.kind : entry.page} entry={entry} place={place} counts={counts} />
          ))}
        </nav>
      ))}
      <div class="side-foot">
        <Button kind="bare" isIcon label={`Theme: ${theme.value}`} onClick={nextTheme}>
          <Icon name="sun" />
        </Button>
        <a class="button bare" href="/oauth/account" title={me?.name ?? ""}>
          Account
        </a>
        <a class="quiet button bare" href="/docs" target="_blank" rel="noopener">
          Docs
        </a>
        <span class="grow" />
        <Button kind="bare" isIcon label="Sign out" onClick={() => void signOut()}>
          <Icon name="out" />
        </Button>
        <span class="hidden-visually">Version {settings.version}</span>
      </div>
    </aside>
  );
}

function Home({ place }: { place: InsidePlace }) {
  return (
    <a class="nav-link" href={places.home(place.workspace)} aria-current={place.page === "home" ? "page" : undefined}>
      <Icon name="home" />
      Home
    </a>
  );
}

function NavLink({
  entry,
  place,
  counts,
}: {
  entry: Entry;
  place: InsidePlace;
  counts: Readonly<Record<string, number>>;
}) {
  const { workspace } = place;
  if ("page" in entry)
    return (
      <a
        class="nav-link"
        href={places.page(workspace, entry.page)}
        aria-current={place.page === entry.page ? "page" : undefined}
      >
        <Icon name={entry.icon} />
        {entry.title}
      </a>
    );
  const kind = kindNamed(entry.kind);
  const isHere = "kind" in place && (places.lineOf(place.kind)[0] ?? place.kind).name === entry.kind;
  const count = counts[kind.name];
  return (
    <a class="nav-link" href={places.list(workspace, top(entry.kind))} aria-current={isHere ? "page" : undefined}>
      <Icon name={entry.icon} />
      {titleOf(kind.plural)}
      {count === undefined || count === 0 ? null : <span class="nav-count">{count.toLocaleString("en")}</span>}
    </a>
  );
}

function Switcher({ workspace }: { workspace: string }) {
  const { data = [] } = useWorkspaces();
  const names = data.some(({ name }) => name === workspace) ? data : [{ name: workspace }, ...data];
  return (
    <select
      class="input"
      aria-label="Workspace"
      value={workspace}
      onChange={(event) => go(places.home(event.currentTarget.value))}
    >
      {names.map(({ name, ...one }) => (
        <option key={name} value={name}>
          {("displayName" in one && one.displayName) || name}
        </option>
      ))}
    </select>
  );
}

function useCounts(workspace: string): Readonly<Record<string, number>> {
  const { data } = useOverview(workspace);
  return Object.fromEntries(data?.kinds.map(({ kind, total }) => [kind, total]) ?? []);
}

const Anchor = () => (
  <svg
    width="18"
    height="18"
    viewBox="0 0 32 32"
    fill="none"
    stroke="currentColor"
    stroke-width="3"
    stroke-linecap="round"
    aria-hidden="true"
  >
    <path d="M16 9.600v17M11 14h10M5 18.500c.8 4.800 5.200 8 11 8s10.200-3.200 11-8" />
    <circle cx="16" cy="6.500" r="3" />
  </svg>
);
