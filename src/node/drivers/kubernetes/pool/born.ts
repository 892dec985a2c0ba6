/** What a pod of the pool says about itself. */
import { z } from "zod";
import type { Pod } from "../objects/answers.ts";
import { ANNOTATION, LABEL } from "../objects/names.ts";

/** `id` is that of the life that the pod will have; `node` is the server that made the pod. */
export interface Born {
  id: string;
  node: string;
}

const bornSchema = z.object({ id: z.string().regex(/^[0-9a-f]{12}$/), node: z.string() });

/** Null for a pod that was not made for the pool. */
export function bornIn({ metadata }: Pick<Pod, "metadata">): Born | null {
  try {
    return bornSchema.parse(JSON.parse(metadata.annotations?.[ANNOTATION.born] ?? "null"));
  } catch {
    return null;
  }
}

/** No workload has such a uid, so that no gate token is of two pods. */
export const bornName = ({ metadata }: Pick<Pod, "metadata">): string => `pool:${metadata.name}`;

export const isReady = ({ metadata }: Pod): boolean => metadata.annotations?.[ANNOTATION.ready] === "yes";

/** The kind of a pod that has no owner yet. */
export const kindKeyOf = ({ metadata }: Pod): string | undefined => metadata.labels?.[LABEL.pool];
