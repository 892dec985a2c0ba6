/**
 * The host label by which the gateway finds a preview. The label depends only on the names of workspace, sandbox and
 * preview, so a preview that is deleted and made again gets the same address. A prefix belongs to its workspace. The
 * hash is keyed with the server's own key, so that nobody can find public previews by guessing names.
 */
import { createHmac } from "node:crypto";
import { HOST_LABEL, hostLabelOf, type WordOwner } from "../../contract/held-words.ts";
import type { Transaction } from "../../store/database/database.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Platform } from "../port.ts";

const WORD_DIGITS = 32;

export const prefixLabel = (prefix: string, workspace: string): string => `${prefix}-${workspace}`;

/** Claims the host label that the preview's spec asks for, in the transaction that writes the preview. */
export async function holdWord(tx: Transaction, preview: Resource, deps: Platform): Promise<Resource> {
  const word = (await prefixWord(tx, preview, deps)) || (await plainWord(tx, preview, deps));
  if (word === hostLabelOf(preview)) return preview;
  const labelled = await deps.store.resources.modify(tx, preview.workspace, preview.uid, ({ state }) => ({
    state: { ...state, [HOST_LABEL]: word },
  }));
  return labelled ?? preview;
}

/** Empty when the preview has no prefix, or when the label is taken and has no room for a distinguishing suffix. */
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
