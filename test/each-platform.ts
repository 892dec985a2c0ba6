/** A suite over the whole platform, on the databases that suites above the store run on. */
import { after, before, describe } from "node:test";
import type { Clock } from "../src/lib/time/clock.ts";
import type { Store } from "../src/store/store.ts";
import { testDatabases } from "./databases.ts";
import { type Answer, startTestPlatform, type TestPlatform } from "./platform.ts";

/** What a suite can do with any running platform, be it in this process or not. */
export interface ApiSuite {
  call: TestPlatform["call"];
  /** POSTs to a collection and fails the test unless it worked. */
  make(path: string, name: string | null, spec?: object, metadata?: object): Promise<Answer["body"]>;
  url(): string;
}

export interface Suite extends ApiSuite {
  store(): Store;
}

export interface SuiteOptions {
  clock?: Clock;
  config?: Record<string, string>;
  /** `all` for suites with SQL of their own; `postgres` for suites that test/installed runs on SQLite. */
  on?: "all" | "postgres";
}

export async function onEachDatabase(
  title: string,
  suite: (given: Suite) => void,
  { on, ...options }: SuiteOptions = {},
): Promise<void> {
  const databases = await testDatabases();
  after(() => databases.stop());
  const chosen = on ? databases.all.filter(({ name }) => on === "all" || on === name) : databases.aboveStore;
  for (const database of chosen) {
    describe(`${title} on ${database.name}`, { skip: database.skip }, () => {
      let platform: TestPlatform;
      before(async () => {
        platform = await startTestPlatform({ ...(await database.migrated()), ...options });
      });
      after(() => platform.stop());
      const call: TestPlatform["call"] = (method, path, sent) => platform.call(method, path, sent);
      suite({
        call,
        make: maker(call),
        store: () => platform.app.store,
        url: () => platform.url,
      });
    });
  }
}

export const maker =
  (call: ApiSuite["call"]): ApiSuite["make"] =>
  async (path, name, spec = {}, metadata = {}) => {
    const body = { metadata: { ...(name === null ? {} : { name }), ...metadata }, spec };
    const answer = await call("POST", path, { body });
    if (answer.status !== 200)
      throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)} for ${JSON.stringify(body)}`);
    return answer.body;
  };
