/** The addresses of this console, with its kinds. */
import { KINDS } from "../generated/kinds.ts";
import type { KindFacts } from "../lib/facts.ts";
import { here } from "../lib/location.ts";
import { createPlaces, type Place } from "../lib/places.ts";
import { settings } from "../lib/settings.ts";

export const places = createPlaces(settings.base, KINDS);

export const placeHere = (): Place => places.read(here.value.pathname);

export function kindNamed(name: string): KindFacts {
  const kind = KINDS.find((one) => one.name === name);
  if (!kind) throw new Error(`there is no kind ${name}`);
  return kind;
}

/** Kinds whose resources are parts of a resource of this kind. */
export const partsOf = ({ name }: KindFacts): readonly KindFacts[] => KINDS.filter(({ within }) => within === name);

/** A collection at the top of a workspace. */
export const top = (name: string) => ({ kind: kindNamed(name), parents: [] });
