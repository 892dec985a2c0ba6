/**
 * Links between resources. A link is written in the same transaction as the resource that has it, so that its target
 * exists and cannot be deleted meanwhile, and an exclusive target has one holder.
 */
import { invalidField, PlatformError } from "../../contract/errors.ts";
import { type Link, missingTarget } from "../../contract/references.ts";
import type { Database, Queries, Transaction } from "../database/database.ts";
import type { LinkRow } from "../database/schema.ts";

export interface LinkOwner {
  uid: string;
  workspace: string;
  kind: string;
  name: string;
}

/** Users named in a refusal; further ones are left out to keep the message short. */
const USERS_SHOWN_MAX = 5;

export type Links = ReturnType<typeof createLinks>;

export function createLinks({ database }: { database: Database }) {
  return {
    /** Replaces the links of a resource, in the transaction that writes the resource. */
    replace: (tx: Transaction, owner: LinkOwner, links: readonly Link[]) =>
      replaceLinks(tx.queries, database.dialect, owner, links),

    /** Refuses to delete a resource that others link to; in the transaction that marks it deleted. */
    requireUnused: (tx: Transaction, resource: LinkOwner) => requireUnused(tx.queries, resource),

    /** The resources that link to these names, by target name. */
    async usersOf(workspace: string, kind: string, names: readonly string[]): Promise<Map<string, LinkOwner[]>> {
      const users = new Map<string, LinkOwner[]>();
      if (names.length === 0) return users;
      const rows = await database.read
        .selectFrom("resource_links")
        .selectAll()
        .where("target_workspace", "=", workspace)
        .where("target_kind", "=", kind)
        .where("target", "in", names)
        .orderBy("uid")
        .execute();
      for (const row of rows) users.set(row.target, [...(users.get(row.target) ?? []), ownerOf(row)]);
      return users;
    },

    /** The resources that this one links to; words that it holds are no resources. */
    targetsOf: (uid: string): Promise<{ kind: string; name: string }[]> =>
      database.read
        .selectFrom("resource_links")
        .select(["target_kind as kind", "target as name"])
        .where("uid", "=", uid)
        .where("target_workspace", "<>", "")
        .orderBy("target_kind")
        .orderBy("target")
        .execute(),

    /** How many resources of each kind link to these names: target name → kind → count. */
    async countsOf(
      workspace: string,
      kind: string,
      names: readonly string[],
    ): Promise<Map<string, Record<string, number>>> {
      const counts = new Map<string, Record<string, number>>();
      if (names.length === 0) return counts;
      const rows = await database.read
        .selectFrom("resource_links")
        .select(["target", "kind", (eb) => eb.fn.countAll<number>().as("n")])
        .where("target_workspace", "=", workspace)
        .where("target_kind", "=", kind)
        .where("target", "in", names)
        .groupBy(["target", "kind"])
        .execute();
      for (const row of rows) counts.set(row.target, { ...counts.get(row.target), [row.kind]: Number(row.n) });
      return counts;
    },

    /** The holder of a platform-wide word, read within a transaction; see claims.ts for reads outside of one. */
    async holderIn(tx: Transaction, kind: string, word: string): Promise<LinkOwner | null> {
      const row = await exclusiveRow(tx.queries, "", kind, word);
      return row ? ownerOf(row) : null;
    },

    /** Every held word of one kind; the gateway caches the host names. */
    async wordsAcrossWorkspaces(kind: string): Promise<string[]> {
      const rows = await database.read
        .selectFrom("resource_links")
        .select("target")
        .where("target_workspace", "=", "")
        .where("target_kind", "=", kind)
        .execute();
      return rows.map(({ target }) => target);
    },

    /** The holder of a platform-wide word, such as a host name. */
    async holderOfAcrossWorkspaces(kind: string, word: string): Promise<LinkOwner | null> {
      const row = await exclusiveRow(database.read, "", kind, word);
      return row ? ownerOf(row) : null;
    },
  };
}

const ownerOf = ({ uid, workspace, kind, name }: LinkRow): LinkOwner => ({ uid, workspace, kind, name });

async function replaceLinks(
  queries: Queries,
  dialect: Database["dialect"],
  owner: LinkOwner,
  links: readonly Link[],
): Promise<void> {
  await removeLinks(queries, owner.uid);
  // Always in the same order, so that two writers with the same targets do not deadlock.
  const ordered = [...links].sort((a, b) => (`${a.kind}/${a.name}` < `${b.kind}/${b.name}` ? -1 : 1));
  for (const link of ordered) {
    if (link.to === "resource") await requireTarget(queries, dialect, owner.workspace, link);
    await insertLink(queries, owner, link);
  }
}

export async function removeLinks(queries: Queries, uid: string): Promise<void> {
  await queries.deleteFrom("resource_links").where("uid", "=", uid).execute();
}

async function requireUnused(queries: Queries, { uid, workspace, kind, name }: LinkOwner): Promise<void> {
  const users = await queries
    .selectFrom("resource_links")
    .select(["kind", "name"])
    .where("target_workspace", "=", workspace)
    .where("target_kind", "=", kind)
    .where("target", "=", name)
    .where("uid", "<>", uid)
    .orderBy("uid")
    .limit(USERS_SHOWN_MAX + 1)
    .execute();
  if (users.length === 0) return;
  const shown = users.slice(0, USERS_SHOWN_MAX).map((user) => `${user.kind} '${user.name}'`);
  if (users.length > USERS_SHOWN_MAX) shown.push("others");
  throw new PlatformError(
    "conflict",
    `${kind} '${name}' is in use by ${shown.join(", ")}. Delete or change what uses it first.`,
  );
}

async function requireTarget(
  queries: Queries,
  dialect: Database["dialect"],
  workspace: string,
  link: Link,
): Promise<void> {
  const { kind, name, field } = link;
  const target = queries
    .selectFrom("resources")
    .select("uid")
    .where("workspace", "=", workspace)
    .where("kind", "=", kind)
    .where("parent", "=", "")
    .where("slot", "=", name)
    .where("deleted_at", "is", null);
  // The row lock makes a concurrent deletion wait for this transaction and then find the link. SQLite has one writer.
  const row = await (dialect === "postgres" ? target.forShare() : target).executeTakeFirst();
  if (!row) throw invalidField(field, missingTarget(link));
}

async function insertLink(queries: Queries, owner: LinkOwner, { field, kind, name, exclusive, to }: Link) {
  const scope = to === "claim" ? "" : owner.workspace;
  const inserted = await queries
    .insertInto("resource_links")
    .values({
      uid: owner.uid,
      workspace: owner.workspace,
      kind: owner.kind,
      name: owner.name,
      target_workspace: scope,
      target_kind: kind,
      target: name,
      exclusive: exclusive ? 1 : 0,
    })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  if (Number(inserted.numInsertedOrUpdatedRows ?? 0) > 0 || !exclusive) return;
  const holder = await exclusiveRow(queries, scope, kind, name);
  if (holder?.uid === owner.uid) return;
  const who = holder?.workspace === owner.workspace ? `${holder.kind} '${holder.name}'` : "somebody else";
  throw new PlatformError("conflict", `${field}: ${kind} '${name}' is in use by ${who}.`);
}

const exclusiveRow = (
  queries: Queries,
  workspace: string,
  kind: string,
  target: string,
): Promise<LinkRow | undefined> =>
  queries
    .selectFrom("resource_links")
    .selectAll()
    .where("target_workspace", "=", workspace)
    .where("target_kind", "=", kind)
    .where("target", "=", target)
    .where("exclusive", "=", 1)
    .executeTakeFirst();
