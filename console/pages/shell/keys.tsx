/** The keys of the console, as data, and the dialog that lists them. */
import { signal } from "@preact/signals";
import { go } from "../../lib/location.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Facts } from "../../ui/facts.tsx";
import { placeHere, places, top } from "../../views/places.ts";

export const isPaletteOpen = signal(false);
const areKeysOpen = signal(false);

export const openPalette = (): void => {
  isPaletteOpen.value = true;
};
export const openKeys = (): void => {
  areKeysOpen.value = true;
};

interface Key {
  keys: string;
  about: string;
  act(workspace: string): void;
}

const goTo = (kind: string, letter: string, about: string): Key => ({
  keys: `g ${letter}`,
  about,
  act: (workspace) => go(places.list(workspace, top(kind))),
});

const KEYS: readonly Key[] = [
  { keys: "?", about: "These keys", act: openKeys },
  { keys: "/", about: "Filter the list", act: () => document.querySelector<HTMLElement>("[data-key='/']")?.focus() },
  {
    keys: "c",
    about: "Create, on a list",
    act: () => document.querySelector<HTMLElement>("[data-key='c'] a")?.click(),
  },
  { keys: "g h", about: "Home", act: (workspace) => go(places.home(workspace)) },
  goTo("sandbox", "s", "Sandboxes"),
  goTo("agent", "a", "Agents"),
  goTo("function", "f", "MCP servers"),
  goTo("job", "j", "Jobs"),
  goTo("model", "m", "Models"),
];

const OTHERS: readonly Pick<Key, "keys" | "about">[] = [
  { keys: "Ctrl K", about: "Search, go anywhere, run any operation" },
  { keys: "↑ ↓", about: "Move in a list" },
  { keys: "Enter", about: "Open" },
  { keys: "Esc", about: "Close" },
];

/** Time between the two letters of a key like `g s`. */
const PAIR_MS = 1200;

export function listenForKeys(): () => void {
  let first = { letter: "", at: 0 };
  const onKey = (event: KeyboardEvent): void => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openPalette();
      return;
    }
    const { target, key } = event;
    const isTyping = target instanceof HTMLElement && takesKeys(target);
    const place = placeHere();
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || place.page === "start") return;
    const pair = event.timeStamp - first.at < PAIR_MS ? `${first.letter} ${key}` : key;
    first = { letter: key, at: event.timeStamp };
    const found = KEYS.find(({ keys }) => keys === pair) ?? KEYS.find(({ keys }) => keys === key);
    if (!found) return;
    event.preventDefault();
    found.act(place.workspace);
  };
  addEventListener("keydown", onKey);
  return () => removeEventListener("keydown", onKey);
}

/** A dialog that was closed keeps the focus until the next frame, and takes no keys any more. */
function takesKeys(target: HTMLElement): boolean {
  const dialog = target.closest("dialog");
  return dialog === null ? target.closest("input, textarea, select, .cm-editor, .xterm") !== null : dialog.open;
}

export function Keys() {
  if (!areKeysOpen.value) return null;
  return (
    <Dialog
      title="Keys"
      onClose={() => {
        areKeysOpen.value = false;
      }}
    >
      <Facts
        facts={[...OTHERS, ...KEYS].map(({ keys, about }) => [
          about,
          keys.split(" ").map((word) => <kbd key={word}>{word}</kbd>),
        ])}
      />
    </Dialog>
  );
}
