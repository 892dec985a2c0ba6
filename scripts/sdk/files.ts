/** Generated files of the SDKs. */
import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import type { Operation } from "../../src/contract/operation.ts";
import { pythonNextSteps, typescriptNextSteps } from "./next-steps.ts";
import { type SdkModel, sdkModel } from "./operations.ts";
import { pythonApi } from "./python-api.ts";
import { pythonSync } from "./python-sync.ts";
import { pythonTypes } from "./python-types.ts";
import { typescriptApi, typescriptTable, typescriptTypes } from "./typescript.ts";

const TYPESCRIPT = "sdk/typescript/src/generated";
const PYTHON = "sdk/python/berth_sdk";

export function sdkFiles(operations: readonly Operation[]): Record<string, string> {
  const model = sdkModel(operations);
  return {
    [`${TYPESCRIPT}/types.ts`]: typescriptTypes(model),
    [`${TYPESCRIPT}/api.ts`]: typescriptApi(model),
    [`${TYPESCRIPT}/table.ts`]: typescriptTable(model),
    [`${TYPESCRIPT}/next-steps.ts`]: typescriptNextSteps(),
    ...pythonFiles(model),
  };
}

function pythonFiles(model: SdkModel): Record<string, string> {
  const api = pythonApi(model);
  const byHand = globSync(`${PYTHON}/_async/*.py`).filter((file) => basename(file) !== "generated.py");
  const sources = byHand.map((file) => [basename(file), readFileSync(file, "utf8")] as const);
  return {
    [`${PYTHON}/generated/types.py`]: pythonTypes(model),
    [`${PYTHON}/generated/next_steps.py`]: pythonNextSteps(),
    [`${PYTHON}/_async/generated.py`]: api,
    ...Object.fromEntries(
      [...sources, ["generated.py", api] as const].map(([name, source]) => [
        `${PYTHON}/_sync/${name}`,
        pythonSync(source),
      ]),
    ),
  };
}
