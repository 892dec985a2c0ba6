import type { Caller } from "../../contract/caller.ts";
import { invalidField, PlatformError } from "../../contract/errors.ts";
import { type Implementation, implement } from "../port.ts";
import { createKey, deleteKey, listKeys, type Owner } from "./keys.ts";
import { apiKeyCreate, apiKeyDelete, apiKeyList } from "./operations.ts";

export const apiKeyHandlers: readonly Implementation[] = [
  implement(apiKeyList, async ({ caller }, deps) => listKeys(ownerOf(caller), deps)),
  implement(apiKeyCreate, async ({ caller, body }, deps) => {
    const wanted = body.workspace ?? caller.home;
    const own = (await deps.store.workspaces.listFor(caller.subject)).find(({ name }) => name === wanted);
    if (body.workspace !== undefined && !own)
      throw invalidField("workspace", `'${body.workspace}' does not exist, or is not yours`);
    const workspace = own?.name ?? null;
    return createKey({ ...ownerOf(caller), workspace }, body, caller, deps);
  }),
  implement(apiKeyDelete, async ({ caller, params }, deps) => deleteKey(ownerOf(caller), params.apiKeyId ?? "", deps)),
];

function ownerOf(caller: Caller): Owner {
  if (caller.subjectType !== "user")
    throw new PlatformError(
      "forbidden",
      "These are the keys of people. The keys of a service account are at /service_accounts/{clientId}/api_keys.",
    );
  return { type: "user", id: caller.subject, workspace: null };
}
