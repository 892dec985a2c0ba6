/** The URL of the web console, for operations that answer with a link to one of its pages. */
import { consoleUrl } from "../contract/console.ts";
import type { Settings } from "./port.ts";

export const pagesUrl = ({ publicUrl, domain, consoleUrl: given }: Settings): string =>
  consoleUrl({ publicUrl, domain: domain ?? undefined, consoleUrl: given ?? undefined });
