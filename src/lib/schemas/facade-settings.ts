/** The setting of `config.ts` that is about façades; `contract/facades.ts` says where each begins. */
import { z } from "zod";
import { list } from "./setting-values.ts";

export const FACADE_NAMES = ["openai", "anthropic", "e2b"] as const;

export const facadeSettings = {
  facades: {
    env: "BERTH_FACADES",
    schema: list
      .transform((names) => names.filter((name) => name !== "none"))
      .pipe(z.array(z.enum(FACADE_NAMES)))
      .default([...FACADE_NAMES]),
    about:
      "APIs of other products that this server speaks as well: openai, anthropic, e2b. Absent = all; none = its own only.",
  },
};
