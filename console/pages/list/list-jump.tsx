/** Leads to any place of a long list, by a slider from its first to its last row or by a time or a name. */
import { useState } from "preact/hooks";
import { useEnds } from "../../api/pages.ts";
import { isByName, type ListQuery } from "../../api/resources.ts";
import { shortTimeOf } from "../../lib/format.ts";
import { nameAt, shareOfName, shareOfTime, timeAt } from "../../lib/list-place.ts";
import { setQuery } from "../../lib/location.ts";
import type { Collection } from "../../lib/places.ts";

const STEPS = 1000;

export interface ListJumpProps {
  workspace: string;
  collection: Collection;
  query: ListQuery;
  from: string;
}

export function ListJump({ workspace, collection, query, from }: ListJumpProps) {
  const { data: ends } = useEnds(workspace, collection, query);
  const [moving, setMoving] = useState<number | null>(null);
  // The list is drawn again whenever a resource changes, which must not take away a half-typed name.
  const [typed, setTyped] = useState<string | null>(null);
  if (!ends) return null;
  const byName = isByName(query.sort);
  const [placeAt, shareOf] = byName ? [nameAt, shareOfName] : [timeAt, shareOfTime];
  const share = moving ?? (from === "" ? 0 : shareOf(ends, from));
  const place = moving === null ? from || ends[0] : placeAt(ends, share);
  const shown = byName ? place : shortTimeOf(place);
  const jump = (to: string): void => {
    setMoving(null);
    setTyped(null);
    setQuery({ from: to });
  };
  return (
    <div class="list-jump">
      <label class="grow">
        <span class="quiet">{byName ? ends[0] : shortTimeOf(ends[0])}</span>
        <input
          type="range"
          aria-label="Place in the list"
          aria-valuetext={shown}
          min={0}
          max={STEPS}
          value={Math.round(share * STEPS)}
          onInput={(event) => {
            setTyped(null);
            setMoving(Number(event.currentTarget.value) / STEPS);
          }}
          onChange={(event) => {
            const chosen = Number(event.currentTarget.value) / STEPS;
            jump(chosen === 0 ? "" : placeAt(ends, chosen));
          }}
        />
        <span class="quiet">{byName ? ends[1] : shortTimeOf(ends[1])}</span>
      </label>
      {byName ? (
        <input
          class="input"
          aria-label="Go to a name"
          placeholder="Go to a name"
          maxLength={256}
          value={typed ?? (moving === null ? from : place)}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onChange={(event) => jump(event.currentTarget.value.trim())}
        />
      ) : (
        <input
          class="input"
          type="datetime-local"
          step={1}
          aria-label="Go to a time"
          value={localTime(place)}
          onChange={(event) => jump(utcTime(event.currentTarget.value))}
        />
      )}
    </div>
  );
}

/** As the field of the browser takes it: the local time without its zone. */
function localTime(time: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

const utcTime = (local: string): string => (local === "" ? "" : new Date(local).toISOString());
