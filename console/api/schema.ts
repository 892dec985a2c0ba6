/** The schema of what creates a resource, loaded with the first form or text that needs it. */
import { SCHEMAS } from "../generated/schemas.ts";
import { useAnswer } from "./query.ts";

/** Undefined while it is loaded; a kind that cannot be created has no schema. */
export const useSchema = (kind: string) =>
  useAnswer<{ value: unknown }>({
    key: ["schema", kind],
    ask: async () => ({ value: (await SCHEMAS[kind]?.())?.default }),
  });
