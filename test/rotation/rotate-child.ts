/**
 * Rotates the key of a data folder in a process of its own, which ends without warning at the given step: `step:n` is
 * the n-th time that the rotation tells of this step, `made` the moment after the new key was written down.
 *
 *   node test/rotation/rotate-child.ts DATA-FOLDER DATABASE-URL|"" STEP
 */
import { rotateKey } from "../../src/auth/rotate-key.ts";
import { takeNextKey, unlock } from "../../src/auth/secret-key.ts";
import { fingerprintOf } from "../../src/lib/sealed-box.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { openStore } from "../../src/store/store.ts";

const [dataDir = "", databaseUrl = "", end = ""] = process.argv.slice(2);
const die = (): void => {
  process.kill(process.pid, "SIGKILL");
};

const key = takeNextKey({ data: dataDir });
if (key === null) throw new Error("there is no next key");
if (end === "made") die();
const store = await openStore({
  ...{ dataDir, databaseUrl: databaseUrl || null, clock: systemClock, unlock: unlock({ data: dataDir }) },
  onError: (error) => console.error(error),
});
const times: Record<string, number> = {};
await rotateKey(store, fingerprintOf(key), {
  onProgress: ({ step }) => {
    times[step] = (times[step] ?? 0) + 1;
    if (end === `${step}:${times[step]}`) die();
  },
});
await store.close();
