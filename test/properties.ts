/** The same values in every run: a test is red for a change, never by chance. The long run draws new ones. */

import fc from "fast-check";
import { LONG } from "./long.ts";

if (!LONG) fc.configureGlobal({ seed: 20_261_115 });

export { default } from "fast-check";
