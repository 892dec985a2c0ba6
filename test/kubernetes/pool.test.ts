/** Pods of the pool: as pods that were made for their owners, one owner each, and no more of them than were asked for. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { enterGate } from "../../src/lib/network/gate/handshake.ts";
import { newUid } from "../../src/node/conformance/harness.ts";
import { callControl } from "../../src/node/drivers/common/control.ts";
import type { KubernetesDriver, KubernetesDriverOptions } from "../../src/node/drivers/kubernetes/kubernetes-driver.ts";
import { digestOf } from "../../src/node/drivers/kubernetes/objects/names.ts";
import type { WorkloadSpec } from "../../src/node/workload.ts";
import { run } from "../local/run.ts";
import { eventually } from "../sandboxd-harness.ts";
import { type Cluster, kubernetesMissing, startCluster } from "./cluster.ts";
import { NAMESPACE } from "./kubelet.ts";
import type { KubeObject } from "./store.ts";

describe("the pool of pods", { skip: kubernetesMissing ?? false }, () => {
  let cluster: Cluster;
  let one: KubernetesDriver;
  let two: KubernetesDriver;
  const platform: string[] = [];
  const onPlatform = (uid: string, socket: { end(text: string): unknown }): void => {
    platform.push(uid);
    socket.end("the platform");
  };
  const warnings: unknown[] = [];

  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster?.stop());
  beforeEach(async () => {
    cluster.api.losesAnswer = () => false;
    cluster.api.conflicts = () => false;
    const pooled: Partial<KubernetesDriverOptions> = {
      ...{ poolSize: 1, onPlatform },
      onWarning: (_, { err }) => warnings.push(err),
    };
    one = await cluster.open(pooled);
    two = await cluster.open({ ...pooled, node: "there" });
  });
  afterEach(async () => {
    await Promise.all([one.stop("kill"), two.stop("kill")]);
    assert.deepEqual(pods(), [], "servers leave none of their own pods behind");
    const secrets = cluster.api.store.list("secrets", NAMESPACE).map(({ metadata }) => metadata.name);
    assert.deepEqual(secrets, ["berth-workload-key"]);
  });

  const spec = (more: Partial<WorkloadSpec> = {}): WorkloadSpec => ({
    ...{ uid: newUid(), name: "box", image: "base-image", env: {}, network: "outbound" },
    limits: { memoryMb: 128, cpus: 0.5 },
    ...more,
  });
  const pods = (): KubeObject[] => cluster.api.store.list("pods", NAMESPACE);
  const annotation = (pod: KubeObject | undefined, name: string) => pod?.metadata.annotations?.[`berth.${name}`];
  const waiting = () => pods().filter(({ metadata }) => metadata.labels?.["berth.pool"] !== undefined);
  const ready = () => waiting().filter((pod) => annotation(pod, "ready") === "yes");
  const podOf = (uid: string) => pods().filter((pod) => annotation(pod, "record")?.includes(`"uid":"${uid}"`));
  /** The first sandbox of a size finds none; from then on the size is in stock. */
  const stocked = async (more: Partial<WorkloadSpec> = {}, count = 1): Promise<void> => {
    const first = spec(more);
    assert.equal((await one.create(first)).pooled, false);
    await one.destroy(first.uid);
    await eventually(() => ready().length === count, `${count} waiting: ${warnings.map(String)}`);
  };

  test("a claimed pod is as one that was made for its owner", async () => {
    await stocked();
    assert.deepEqual(await one.list(), [], "a waiting pod is nobody's");
    const log = { workspace: "w", plural: "sandboxes", name: "n", uid: "u" } as never;
    const more = { name: "named", env: { GREETING: "a 'quoted'\n$line", HOME: "/tmp" }, log };
    const [mine, other] = [spec(more), spec({ ...more, limits: { memoryMb: 192, cpus: 0.5 } })];
    const [warm, cold] = [await one.create(mine), await one.create(other)];
    assert.deepEqual([warm.pooled, cold.pooled], [true, false]);
    const look = `pwd; id; env | grep -v -e '^_=' | sort; cat /proc/1/cmdline | tr '\\0' ' '; ls /var/log/sandbox-api | wc -l`;
    assert.deepEqual(await run(warm, look), await run(cold, look));
    const [claimed, made] = [podOf(mine.uid)[0], podOf(other.uid)[0]];
    assert.ok(claimed && made);
    const shapeOf = (pod: KubeObject, uid: string): unknown => {
      const { labels, annotations } = pod.metadata;
      const { "berth.uid": _, ...rest } = labels ?? {};
      const record = JSON.parse(annotations?.["berth.record"] ?? "{}");
      assert.equal(record.uid, uid);
      return { labels: rest, logNode: annotations?.["berth.log-node"], log: record.log, mounts: record.mounts };
    };
    assert.deepEqual(shapeOf(claimed, mine.uid), shapeOf(made, other.uid));
    const plain = (pod: KubeObject) =>
      JSON.parse(JSON.stringify(pod.spec).replaceAll(/berth-[wp]-[0-9a-f-]+/g, "NAME"));
    const strip = ({ hostname: _, containers, initContainers, ...rest }: Record<string, unknown>) => rest;
    assert.deepEqual(strip(plain(claimed)), strip(plain(made)));
    assert.ok(Date.parse(warm.createdAt) > Date.parse(claimed.metadata.creationTimestamp) - 1);
    assert.equal(warm.log?.workspace, "w");
    assert.equal((await two.observe(mine.uid))?.pooled, true, "any server sees it");
    // The doors tell the platform which workload calls.
    const { endpoint } = warm;
    assert.ok(endpoint.kind === "tcp");
    const said = await run(warm, `bash -c 'exec 3<>/dev/tcp/${endpoint.host}/987 && cat <&3'`);
    assert.deepEqual([said.output, platform.at(-1)], ["the platform", mine.uid]);
    // Freezing, halting and coming back need nothing of how the pod was made.
    await run(warm, "echo kept > /tmp/file");
    assert.equal((await two.capabilities.freezing.freeze(mine.uid)).state, "frozen");
    assert.equal((await one.capabilities.freezing.thaw(mine.uid)).state, "running");
    await one.destroy(mine.uid, { keepFiles: true });
    assert.equal(
      (await run(await two.create(mine), "cat /tmp/file; printenv GREETING")).output,
      "kept\na 'quoted'\n$line\n",
    );
    for (const { uid } of [mine, other]) await two.destroy(uid);
    assert.equal(await one.observe(mine.uid), null);
  });

  test("a claimed pod takes no second owner, and its door token is of its owner alone", async (t) => {
    await stocked();
    const mine = spec({ env: { SECRET: "of the first" } });
    const made = await one.create(mine);
    assert.equal(made.pooled, true);
    await assert.rejects(callControl(made.endpoint, "/claim", { env: { SECRET: "of another" }, doors: [] }));
    assert.equal((await run(made, "printenv SECRET")).output, "of the first\n");
    const claim = JSON.parse((await run(made, "cat /run/berth/state/claim.json")).output);
    const [{ purpose, token, port }] = claim.doors;
    assert.ok(purpose.includes(mine.uid));
    const enter = async (as: string): Promise<void> => {
      const socket = connect(port, "127.0.0.1").on("error", () => {});
      t.after(() => socket.destroy());
      await enterGate(socket, { purpose: as, token });
    };
    await enter(purpose);
    await assert.rejects(enter(purpose.replace("platform:", "egress:")), /refused/);
    await one.destroy(mine.uid);
    await assert.rejects(enter(purpose), /refused/);
  });

  test("of two servers that claim one pod at once one wins, and the other's sandbox has a pod of its own", async () => {
    await stocked();
    const both = [spec({ env: { WHO: "a" } }), spec({ env: { WHO: "b" } })] as const;
    const [a, b] = await Promise.all([one.create(both[0]), two.create(both[1])]);
    assert.deepEqual([a.pooled, b.pooled].sort(), [false, true]);
    assert.deepEqual(
      [await run(a, "echo $WHO"), await run(b, "echo $WHO")].map(({ output }) => output),
      ["a\n", "b\n"],
    );
    for (const { uid } of both) assert.equal(podOf(uid).length, 1);
  });

  test("two servers that start one sandbox at once leave one pod, also with a pod for each of them", async () => {
    await stocked();
    const again = spec();
    await Promise.all([one.create(again), two.create(spec())]);
    await eventually(() => ready().length >= 1);
    for (let round = 0; round < 4; round += 1) {
      const wanted = spec({ env: { WHO: "same" } });
      const [a, b] = await Promise.all([one.create(wanted), two.create(wanted)]);
      assert.deepEqual(a.endpoint, { ...b.endpoint, node: a.endpoint.node });
      assert.equal((await run(b, "echo $WHO")).output, "same\n");
      assert.equal(podOf(wanted.uid).length, 1);
      await two.destroy(wanted.uid);
      assert.deepEqual(podOf(wanted.uid), []);
    }
  });

  test("a claim whose answer was lost, or that others overtake, is one claim", async () => {
    await stocked();
    let losses = 1;
    cluster.api.losesAnswer = (method, path) => method === "PATCH" && path.includes("-p-") && losses-- > 0;
    let conflicts = 2;
    cluster.api.conflicts = (method, path) => method === "PATCH" && path.includes("-p-") && conflicts-- > 0;
    const wanted = spec();
    assert.equal((await one.create(wanted)).pooled, true);
    assert.equal(podOf(wanted.uid).length, 1);
  });

  test("a pod whose server ended in the middle of its claim is not used; the sandbox gets another", async () => {
    await stocked();
    const wanted = spec({ env: { WHO: "whole" } });
    const [pod] = ready();
    assert.ok(pod);
    const { metadata } = pod;
    const born = JSON.parse(annotation(pod, "born") ?? "{}");
    const record = { uid: wanted.uid, name: "box", id: born.id, image: "base-image", mounts: [], command: false };
    const annotations = {
      ...metadata.annotations,
      "berth.claim": "word",
      "berth.record": JSON.stringify({ ...record, born: `pool:${metadata.name}` }),
    };
    const { "berth.pool": _, ...labels } = metadata.labels ?? {};
    const claimed = { ...metadata, annotations, labels: { ...labels, "berth.uid": digestOf(wanted.uid) } };
    cluster.api.store.replace("pods", { ...pod, metadata: claimed });
    assert.equal(await one.observe(wanted.uid), null);
    const made = await one.create(wanted);
    assert.equal((await run(made, "echo $WHO")).output, "whole\n");
    assert.equal(podOf(wanted.uid).length, 1);
  });

  test("commands, volumes, other images and users' own sizes of processes are made for their owners", async () => {
    await stocked();
    await one.capabilities.volumes.create({ id: "kept", sizeMb: 8 });
    const mounts = [{ source: { volume: "kept" }, path: "/data" }];
    const own = [
      spec({ exec: { argv: ["sleep", "60"] } }),
      spec({ mounts }),
      spec({ workDir: "/tmp" }),
      spec({ limits: { memoryMb: 128, cpus: 0.5, pids: 99 } }),
      spec({ network: "closed" }),
    ];
    for (const each of own) assert.equal((await one.create(each)).pooled, false);
    for (const { uid } of own) await one.destroy(uid);
    await one.capabilities.volumes.destroy("kept");
  });

  test("a sandbox whose claimed pod the cluster takes gets another, and has one", async () => {
    await stocked();
    const wanted = spec({ env: { WHO: "same" } });
    assert.equal((await one.create(wanted)).pooled, true);
    const [taken] = podOf(wanted.uid);
    assert.ok(taken);
    const metadata = { ...taken.metadata, deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 30 };
    cluster.api.store.replace("pods", { ...taken, metadata });
    await eventually(async () => (await two.observe(wanted.uid)) === null);
    const again = await two.create(wanted);
    assert.equal((await run(again, "echo $WHO")).output, "same\n");
    assert.equal(podOf(wanted.uid).length, 1);
    assert.notEqual(podOf(wanted.uid)[0]?.metadata.uid, taken.metadata.uid);
  });

  test("a pod that finds no room gets that of the pool", async () => {
    await stocked();
    const wanted = spec({ limits: { memoryMb: 999, cpus: 0.5 } });
    cluster.kubelet.roomFor = () => waiting().length === 0;
    try {
      assert.equal((await one.create(wanted)).pooled, false);
      assert.deepEqual(waiting(), []);
    } finally {
      cluster.kubelet.roomFor = () => true;
    }
  });
});
