/** Every kind and every operation: the list that routes, openapi.json, the client, the CLI and the tests are derived from. */
import type { Kind } from "../contract/kind.ts";
import type { Operation } from "../contract/operation.ts";
import { accountOperations } from "./account/operations.ts";
import { drive } from "./drive/kind.ts";
import { volume } from "./volume/kind.ts";
import { workspaceOperations } from "./workspace/operations.ts";

export const KINDS: readonly Kind[] = [drive, volume];

const EXTRA_OPERATIONS: readonly Operation[] = [...accountOperations, ...workspaceOperations];

export const OPERATIONS: readonly Operation[] = [...KINDS.flatMap((kind) => kind.operations), ...EXTRA_OPERATIONS];
