import assert from "node:assert/strict";
import { test } from "node:test";
import type { Driver } from "../driver.ts";
import { lazyDriver } from "../lazy-driver.ts";
import { CAPABILITY_NAMES } from "./capabilities.ts";
import { lacking, need, refuseWithout } from "./need.ts";

/** Only what is asked here: a driver of this name that can unpack, and nothing else. */
const unpacker = (name: string): Driver =>
  ({
    name,
    capability: async (wanted: string) => (wanted === "unpacking" ? { unpack: async () => ({ sizeBytes: 1 }) } : null),
  }) as unknown as Driver;

const lazy = (open: () => Promise<Driver>) => lazyDriver({ name: "listed", node: "here", open });

test("a missing capability is refused with the names of driver and capability, one that is there is answered", async () => {
  const driver = lazy(async () => unpacker("opened"));
  assert.equal(driver.name, "listed");
  const message = "This server runs workloads with 'opened', which has no snapshots.";
  await assert.rejects(need(driver, "snapshots"), { code: "unprocessable", message });
  await assert.rejects(refuseWithout(driver, "snapshots"), { code: "unprocessable", message });
  assert.deepEqual(await (await need(driver, "unpacking")).unpack("a", "b", { entriesMax: 1, bytesMax: 1 }), {
    sizeBytes: 1,
  });
  await refuseWithout(driver, "unpacking");
  const lacks = await lacking(driver);
  assert.equal(lacks.length, CAPABILITY_NAMES.length - 1);
  assert.ok(lacks.includes(message));
});

test("a record is not refused, and does not wait, while the driver opens or when it cannot", async () => {
  await refuseWithout(
    lazy(() => new Promise(() => {})),
    "volumes",
  );
  const broken = lazy(() => Promise.reject(new Error("no machine")));
  await refuseWithout(broken, "volumes");
  await assert.rejects(need(broken, "volumes"), /no machine/);
});
