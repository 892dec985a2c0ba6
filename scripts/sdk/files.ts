/** Generated files of the SDKs. */
import type { Operation } from "../../src/contract/operation.ts";
import { typescriptNextSteps } from "./next-steps.ts";
import { sdkModel } from "./operations.ts";
import { typescriptApi, typescriptTable, typescriptTypes } from "./typescript.ts";

export function sdkFiles(operations: readonly Operation[]): Record<string, string> {
  const model = sdkModel(operations);
  return {
    "sdk/typescript/src/generated/types.ts": typescriptTypes(model),
    "sdk/typescript/src/generated/api.ts": typescriptApi(model),
    "sdk/typescript/src/generated/table.ts": typescriptTable(model),
    "sdk/typescript/src/generated/next-steps.ts": typescriptNextSteps(),
  };
}
