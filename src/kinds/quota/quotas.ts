/** Quotas: the operator names them by API word, the store keeps them by kind. */
import { PlatformError } from "../../contract/errors.ts";
import { DRIVE_MB, DRIVE_OBJECTS } from "../../lib/schemas/drive-quota.ts";
import { KINDS } from "../index.ts";

/** Maps an API word to its kind. Kinds inside others are counted over the whole workspace. */
export const quotaWords = (): Record<string, string> => ({
  ...Object.fromEntries(KINDS.map((kind) => [kind.plural, kind.name])),
  images: "image",
});

export function quotasByKind(byWord: Readonly<Record<string, number>>): Record<string, number> {
  const words = quotaWords();
  const ofKinds = Object.entries(byWord).filter(([word]) => word !== DRIVE_MB && word !== DRIVE_OBJECTS);
  return Object.fromEntries(
    ofKinds.map(([word, limit]) => {
      const kind = words[word];
      if (!kind)
        throw new PlatformError(
          "bad_request",
          `quotas: '${word}' is not a kind of resource. Known are ${[...Object.keys(words), DRIVE_MB, DRIVE_OBJECTS].sort().join(", ")}.`,
        );
      return [kind, limit];
    }),
  );
}
