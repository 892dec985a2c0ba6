/** Only the creator of a resource and the workspace's admins may delete it when others refer to it by name. */
import { PlatformError } from "../contract/errors.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Call } from "./port.ts";

type Asker = Pick<Call, "caller" | "role">;

export const isCreator = ({ createdBy }: Resource, { caller, role }: Asker): boolean =>
  role === "admin" || createdBy === caller.displayName;

export function requireCreator(resource: Resource, asker: Asker): void {
  if (isCreator(resource, asker)) return;
  throw new PlatformError(
    "forbidden",
    `${resource.kind} '${resource.name}' was made by ${resource.createdBy}; only they or an admin of the workspace may delete it.`,
  );
}
