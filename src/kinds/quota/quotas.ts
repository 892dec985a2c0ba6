/** Quotas as the operator writes them, by the words of the API, and as the store holds them, by kind. */
import { PlatformError } from "../../contract/errors.ts";
import { KINDS } from "../index.ts";

/** Word -> kind. Kinds within others count over the whole workspace. */
export const quotaWords = (): Record<string, string> => ({
  ...Object.fromEntries(KINDS.map((kind) => [kind.plural, kind.name])),
  images: "image",
});

export function quotasByKind(byWord: Readonly<Record<string, number>>): Record<string, number> {
  const words = quotaWords();
  return Object.fromEntries(
    Object.entries(byWord).map(([word, limit]) => {
      const kind = words[word];
      if (!kind)
        throw new PlatformError(
          "bad_request",
          `quotas: '${word}' is not a kind of resource. Known are ${Object.keys(words).sort().join(", ")}.`,
        );
      return [kind, limit];
    }),
  );
}
