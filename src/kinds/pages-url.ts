/** Where the pages for people are, for operations that answer with a link to one. */
import { consoleUrl } from "../contract/console.ts";
import type { Settings } from "./port.ts";

export const pagesUrl = ({ publicUrl, domain, consoleUrl: given }: Settings): string =>
  consoleUrl({ publicUrl, domain: domain ?? undefined, consoleUrl: given ?? undefined });
