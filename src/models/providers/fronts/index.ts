/** The APIs that every provider can be called by, beside OpenAI chat. */
import type { DialectName } from "../dialect.ts";
import type { ProviderDeclaration } from "../provider.ts";
import type { Front } from "./front.ts";
import { messagesFront } from "./messages/front.ts";
import { responsesFront } from "./responses/front.ts";

const FRONTS: Partial<Record<DialectName, Front>> = {
  "openai-responses": responsesFront,
  "anthropic-messages": messagesFront,
};

/** Null where the provider has the API itself, and where there is no way to it by chat. */
export function frontFor(
  dialect: DialectName,
  provider: ProviderDeclaration,
  config: Readonly<Record<string, string>> = {},
): Front | null {
  const front = FRONTS[dialect];
  if (!front || speaksItself(dialect, provider, config)) return null;
  return provider.chat || provider.dialects.includes("openai-chat") ? front : null;
}

/** `nativeDialects` of a connection: what the server at its address has beside what the declaration says. */
export const speaksItself = (
  dialect: DialectName,
  provider: ProviderDeclaration,
  config: Readonly<Record<string, string>>,
): boolean =>
  provider.dialects.includes(dialect) ||
  (config.nativeDialects ?? "").split(",").some((name) => name.trim() === dialect);
