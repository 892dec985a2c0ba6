import "./badge.css";

import type { Tone } from "../lib/tones.ts";

/** A word about a state, with a colour that repeats what the word says. */
export function Badge({ tone, children }: { tone: Tone; children: string }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}
