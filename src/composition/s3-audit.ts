/** Audit lines for what is changed through the S3 door, and for credentials that it gives out. */
import type { S3Event, S3Holder } from "../s3/s3-handler.ts";
import type { Store } from "../store/store.ts";

/** A key has up to 1,024 bytes. */
const TARGET_LENGTH_MAX = 300;

const KEY = "key:";

export function createS3Audit(store: Store) {
  return async ({ action, session, bucket, key, status, address, requestId }: S3Event): Promise<void> => {
    const { workspace, holder } = session;
    await store.audit.record({
      actor: holder.subject,
      actorType: holder.subjectType,
      actorName: await nameOf(holder, store),
      authMethod: "s3_session",
      keyId: holder.right?.startsWith(KEY) ? holder.right.slice(KEY.length) : null,
      action,
      target: [bucket, ...(key === undefined ? [] : [key])].join("/").slice(0, TARGET_LENGTH_MAX),
      accountId: (await store.workspaces.get(workspace))?.accountId ?? null,
      workspace,
      outcome: status < 400 ? "ok" : status === 403 ? "denied" : "failed",
      status,
      sourceAddress: address,
      requestId,
    });
  };
}

async function nameOf({ subject, subjectType }: S3Holder, store: Store): Promise<string> {
  if (subjectType === "user") return (await store.people.getUser(subject))?.email ?? "";
  return (await store.keys.findServiceAccountAcrossWorkspaces(subject))?.name ?? "";
}
