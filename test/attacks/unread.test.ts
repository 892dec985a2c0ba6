/** Clients that ask and never read: the server keeps a bounded number of bytes for them and answers everybody else. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { OWNER_BYTES_MAX } from "../../src/http/unread-answers.ts";
import { ANSWER_BYTES_MAX } from "../../src/kinds/log/handlers.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { SCANS_WAITING_MAX } from "../../src/node/logs/log-room.ts";
import { openLogStore } from "../../src/node/logs/log-store.ts";
import type { LogPages } from "../answers/body.ts";
import { type Identity, makeAccount, makeUser } from "../identities.ts";
import { LONG } from "../long.ts";
import { NEWEST, startTestPlatform, type TestPlatform } from "../platform.ts";

const FLOOD = LONG ? 800 : 50;
/** What lies between two processes beside the server's own memory: the kernel's buffers of one connection. */
const KERNEL_BYTES_MAX = 16 * 1024 * 1024;
const LINES = 300;
const LOGS = "/v0/observability/logs?resourceType=agents&workloadIds=chatty";

suite("answers that nobody reads", () => {
  let platform: TestPlatform;
  let attacker: Identity;
  let neighbour: Identity;
  const dataDir = mkdtempSync(join(tmpdir(), "berth-unread-"));
  const open = new Set<Socket>();

  before(async () => {
    platform = await startTestPlatform({ dataDir });
    const [account] = await platform.app.store.people.listAccountsAcrossUsers();
    attacker = await makeUser(platform.app.store, account?.id ?? "", "member", { main: "member" });
    const other = await makeAccount(platform.app.store, "other");
    neighbour = await makeUser(platform.app.store, other.id, "member", { other: "member" });
    // Lines count from the creation of their workspace on.
    const store = openLogStore({ dir: join(dataDir, "logs", "lines"), clock: systemClock, onError: assert.ifError });
    for (const [workspace, name, length] of [
      ["main", "chatty", 16_000],
      ["other", "calm", 10],
    ] as const) {
      const tag = { workspace, plural: "agents", name, uid: "u", source: "run" as const };
      store.append(
        tag,
        Array.from({ length: LINES }, () => ({ message: "x".repeat(length), severity: 9 })),
      );
      await store.flush();
    }
    await store.stop();
  });
  after(async () => {
    await platform.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const requestOf = (target: string, workspace: string, key: string): string =>
    `GET ${target} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${key}\r\nX-Service-Workspace: ${workspace}\r\nService-Version: ${NEWEST}\r\n\r\n`;

  const unreading = async (text: string): Promise<Socket> => {
    const socket = connect(Number(new URL(platform.url).port), "127.0.0.1").pause();
    open.add(socket);
    socket.on("error", () => {});
    await once(socket, "connect");
    socket.write(text);
    return socket;
  };
  const letGo = (): void => {
    for (const socket of open) socket.destroy();
    open.clear();
  };

  const sample = async (name: string): Promise<number> => {
    const response = await fetch(`${platform.url}/metrics`, {
      headers: { authorization: `Bearer ${platform.apiKey}` },
    });
    const rows = (await response.text()).split("\n").filter((row) => row.startsWith(name));
    return rows.reduce((sum, row) => sum + Number(row.split(" ").at(-1)), 0);
  };
  const answered = (status: string): Promise<number> =>
    sample(`berth_api_request_seconds_count{operation="logQuery",status="${status}"`);
  const neighbourReads = async (): Promise<void> => {
    const path = "/observability/logs?resourceType=agents&workloadIds=calm&limit=1";
    const { status, body } = await platform.call<LogPages>("GET", path, { key: neighbour.key, workspace: "other" });
    assert.deepEqual([status, body.calm?.totalCount], [200, LINES]);
  };

  test("one answer has a bounded size, and its pages together have every line", async () => {
    const read = (offset: number) =>
      platform.call<LogPages>("GET", `${LOGS.slice(3)}&offset=${offset}`, { key: attacker.key, workspace: "main" });
    const first = await read(0);
    const { logs = [], totalCount } = first.body.chatty ?? {};
    assert.equal(totalCount, LINES);
    assert.ok(JSON.stringify(first.body).length < 2 * ANSWER_BYTES_MAX, `${logs.length} lines`);
    assert.match(first.headers.get("warning") ?? "", /offset=/);
    const times = new Set<string>(logs.map(({ timestamp }) => timestamp));
    for (let offset = logs.length; offset < LINES; ) {
      const { body } = await read(offset);
      const page = body.chatty?.logs ?? [];
      assert.notEqual(page.length, 0);
      for (const { timestamp } of page) times.add(timestamp);
      offset += page.length;
    }
    assert.equal(times.size, LINES);
  });

  test("a pipeline of requests on one connection is served as far as its answers are read", async () => {
    const before = await answered("200");
    try {
      await unreading(requestOf(LOGS, "main", attacker.key).repeat(FLOOD));
      // The flood is over when the server has done nothing more of it while others were served.
      let served = 0;
      let read = 0;
      for (let last = -1; last !== served; read += 5) {
        last = served;
        for (let n = 0; n < 5; n += 1) await neighbourReads();
        served = (await answered("200")) - before - read - 5;
      }
      assert.ok(served * ANSWER_BYTES_MAX <= KERNEL_BYTES_MAX + 4 * ANSWER_BYTES_MAX, `${served} of ${FLOOD}`);
      assert.ok((await sample("berth_unread_answer_bytes ")) <= OWNER_BYTES_MAX + 2 * ANSWER_BYTES_MAX);
    } finally {
      letGo();
    }
  });

  test("many connections: what is kept for the attacker is bounded, the rest is refused, a neighbour is answered", async () => {
    const refused = await answered("429");
    try {
      await Promise.all(Array.from({ length: FLOOD }, () => unreading(requestOf(LOGS, "main", attacker.key))));
      await neighbourReads();
      while ((await answered("429")) === refused) await neighbourReads();
      assert.ok((await sample("berth_unread_answer_bytes ")) <= OWNER_BYTES_MAX + 2 * ANSWER_BYTES_MAX);
      const again = await platform.call("GET", LOGS.slice(3), { key: attacker.key, workspace: "main" });
      assert.ok([200, 429].includes(again.status));
      assert.ok(SCANS_WAITING_MAX < FLOOD);
    } finally {
      letGo();
    }
    // The attacker is welcome again once the answers are gone.
    for (;;) {
      const { status, body } = await platform.call("GET", LOGS.slice(3), { key: attacker.key, workspace: "main" });
      if (status === 200) break;
      assert.deepEqual([status, body.error], [429, "too_many_requests"]);
    }
  });
});
