import { remembered } from "../lib/storage.ts";

/** The workspace of the last visit. */
export const lastWorkspace = remembered("workspace", "");
