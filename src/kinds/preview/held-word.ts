/**
 * The word by which the gateway finds a preview. It depends on the workspace, the sandbox's name and the preview's name
 * only, so a preview that is deleted and made again has its address again; a prefix is a word of the workspace. The hash
 * is keyed with the server's own key, so that nobody finds public previews by guessing names.
 */
import { createHmac } from "node:crypto";
import { HOST_LABEL, hostLabelOf, type WordOwner } from "../../contract/held-words.ts";
import type { Transaction } from "../../store/database/database.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Platform } from "../port.ts";

const WORD_DIGITS = 32;

export const prefixLabel = (prefix: string, workspace: string): string => `${prefix}-${workspace}`;

/** Makes the preview hold the word that its spec asks for; in the transaction that writes it. */
export async function holdWord(tx: Transaction, preview: Resource, deps: Platform): Promise<Resource> {
  const word = (await prefixWord(tx, preview, deps)) || (await plainWord(tx, preview, deps));
  if (word === hostLabelOf(preview)) return preview;
  const labelled = await deps.store.resources.modify(tx, preview.workspace, preview.uid, ({ state }) => ({
    state: { ...state, [HOST_LABEL]: word },
  }));
  return labelled ?? preview;
}

/** Empty when the preview has no prefix, or when there is no room left in a label for one that is held elsewhere. */
async function prefixWord(tx: Transaction, { workspace, uid, spec }: Resource, { store }: Platform): Promise<string> {
  const { prefixUrl: prefix, customDomain } = spec;
  if (typeof prefix !== "string" || prefix === "" || customDomain) return "";
  const owner: WordOwner = { workspace, kind: "prefix", name: prefix };
  return store.heldWords.claim(tx, { pool: "preview", owner, natural: prefixLabel(prefix, workspace) }, uid);
}

async function plainWord(tx: Transaction, { workspace, uid, name, parent }: Resource, deps: Platform): Promise<string> {
  const { store } = deps;
  const sandbox = (await store.resources.nameIn(tx, parent)) ?? "";
  const owner: WordOwner = { workspace, kind: "preview", name: `${sandbox}/${name}` };
  const former = await store.heldWords.wordOf(tx, "preview", owner);
  const natural = former ?? hashOf([workspace, sandbox, name], deps);
  return store.heldWords.claim(tx, { pool: "preview", owner, natural }, uid);
}

const hashOf = (parts: readonly string[], { keyFor }: Pick<Platform, "keyFor">): string =>
  createHmac("sha256", keyFor("preview-addresses")).update(JSON.stringify(parts)).digest("hex").slice(0, WORD_DIGITS);
