/** What a new key may do: everything that its owner may, or only the scopes that are ticked. */
import { useEffect, useRef } from "preact/hooks";
import { useAnswer } from "../../api/query.ts";
import { countOf } from "../../lib/format.ts";
import { type ScopeGroup, scopeGroups } from "../../lib/scopes.ts";
import { labelOf } from "../../lib/titles.ts";
import { Button } from "../../ui/button.tsx";
import { Loading } from "../../ui/notice.tsx";

export interface ScopePickerProps {
  /** What a key without scopes may do: `all that you may do`. */
  everything: string;
  /** Empty = everything. */
  picked: ReadonlySet<string>;
  onInput(picked: ReadonlySet<string>): void;
}

const READING = new Set(["get", "list"]);

export function ScopePicker({ everything, picked, onInput }: ScopePickerProps) {
  const { data: groups } = useAnswer({
    key: ["scopes"],
    ask: async () => scopeGroups((await import("../../generated/operations.ts")).OPERATIONS),
  });
  const set = (ids: readonly string[], isOn: boolean): void =>
    onInput(new Set(isOn ? [...picked, ...ids] : [...picked].filter((id) => !ids.includes(id))));
  const reading = groups?.flatMap(({ scopes }) => scopes.filter(({ verb }) => READING.has(verb)).map(({ id }) => id));
  return (
    <details class="scope-picker">
      <summary>{`Scopes: ${picked.size === 0 ? everything : `${countOf(picked.size, "scope")} only`}`}</summary>
      {groups === undefined ? <Loading /> : null}
      <div class="row">
        <Button onClick={() => onInput(new Set(reading))}>Only reading</Button>
        <Button unable={picked.size === 0 ? "Nothing is ticked" : null} onClick={() => onInput(new Set())}>
          {everything.charAt(0).toUpperCase() + everything.slice(1)}
        </Button>
      </div>
      <div class="scope-groups">
        {groups?.map((group) => (
          <Group key={group.name} group={group} picked={picked} onSet={set} />
        ))}
      </div>
    </details>
  );
}

interface GroupProps {
  group: ScopeGroup;
  picked: ReadonlySet<string>;
  onSet(ids: readonly string[], isOn: boolean): void;
}

function Group({ group: { name, scopes }, picked, onSet }: GroupProps) {
  const ids = scopes.map(({ id }) => id);
  const count = ids.filter((id) => picked.has(id)).length;
  const all = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (all.current) all.current.indeterminate = count > 0 && count < ids.length;
  });
  return (
    <fieldset>
      <legend>
        <label>
          <input
            ref={all}
            type="checkbox"
            checked={count === ids.length}
            onChange={(event) => onSet(ids, event.currentTarget.checked)}
          />
          {labelOf(name)}
        </label>
      </legend>
      {scopes.map(({ id, verb, about }) => (
        <label key={id} title={about}>
          <input
            type="checkbox"
            aria-label={id}
            checked={picked.has(id)}
            onChange={(event) => onSet([id], event.currentTarget.checked)}
          />
          {verb}
        </label>
      ))}
    </fieldset>
  );
}
