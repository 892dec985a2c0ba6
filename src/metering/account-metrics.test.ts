import { test } from "node:test";
import { LONG } from "../../test/long.ts";
import { MemoryLedger } from "../../test/metering/memory-ledger.ts";
import { endpointEqualsModel } from "../../test/metering/model-property.ts";
import { pagesOfARunningWindow } from "../../test/metering/running-pages.ts";

test("the endpoint equals plain loops over raw events, for any usage, window, grouping, filter and page", () =>
  endpointEqualsModel({ freshLedger: async () => new MemoryLedger(), runs: LONG ? 5000 : 100 }));

test("pages of a window that is still running have every group once", () => pagesOfARunningWindow(new MemoryLedger()));
