/** The changelog by release: one entry for each, newest first, and one for the changes that no release has yet. */

/** A note under `changes/`; its date is the day on which it was written. */
export interface Note {
  title: string;
  content: string;
  date: string;
}

export interface Release {
  version: string;
  date: string;
  /** Titles of the notes that the release added. */
  notes: readonly string[];
}

/** `releases` come newest first. */
export function byRelease(notes: readonly Note[], releases: readonly Release[]): Note[] {
  const released = new Set(releases.flatMap(({ notes: titles }) => titles));
  const unreleased = notes.filter(({ title }) => !released.has(title));
  const newest = unreleased.map(({ date }) => date).sort();
  const [latest] = releases;
  return [
    ...entryOf(latest ? `Since ${latest.version}` : "Before the first release", newest.at(-1) ?? "", unreleased),
    ...releases.flatMap(({ version, date, notes: titles }) =>
      entryOf(
        version,
        date,
        notes.filter(({ title }) => titles.includes(title)),
      ),
    ),
  ];
}

function entryOf(title: string, date: string, notes: readonly Note[]): Note[] {
  if (notes.length === 0) return [];
  const lines = notes
    .toSorted((a, b) => (a.title < b.title ? -1 : 1))
    .map(({ title: name, content }) => `- **${name}.** ${content.replaceAll("\n", "\n  ")}`);
  return [{ title, date, content: lines.join("\n") }];
}
