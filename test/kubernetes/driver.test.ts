/** The Kubernetes driver in trouble, beside another server, and against workloads and neighbours that mean harm. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, beforeEach, describe, test } from "node:test";
import { enterGate } from "../../src/lib/network/gate/handshake.ts";
import { newUid } from "../../src/node/conformance/harness.ts";
import { dial } from "../../src/node/dial/dial.ts";
import type { KubernetesDriver } from "../../src/node/drivers/kubernetes/kubernetes-driver.ts";
import { digestOf, podName } from "../../src/node/drivers/kubernetes/objects/names.ts";
import { commandReader } from "../../src/node/images/image-command.ts";
import type { WorkloadSpec } from "../../src/node/workload.ts";
import { NO_CREDENTIALS } from "../../src/registry/credentials.ts";
import { createRegistries } from "../../src/registry/registries.ts";
import { freePort } from "../free-port.ts";
import { run } from "../local/run.ts";
import { addImage, startFakeRegistry } from "../registry/fake-registry.ts";
import { eventually } from "../sandboxd-harness.ts";
import {
  BASE_IMAGE,
  type Cluster,
  kubernetesMissing,
  PRIVATE_IMAGE,
  PRIVATE_LOGIN,
  startCluster,
  USER_IMAGE,
} from "./cluster.ts";
import { NAMESPACE } from "./kubelet.ts";
import type { KubeObject } from "./store.ts";

interface PodShape extends KubeObject {
  spec: {
    containers: {
      env: { name: string }[];
      command: string[];
      image: string;
      imagePullPolicy: string;
      securityContext: object;
    }[];
    volumes: object[];
    [field: string]: unknown;
  };
}

interface Resourced {
  resources: { limits: Record<string, string>; requests: Record<string, string> };
}

interface SizedSpec {
  containers: Resourced[];
  initContainers: Resourced[];
  volumes: { name: string; emptyDir?: { sizeLimit?: string } }[];
}

describe("the Kubernetes driver", { skip: kubernetesMissing ?? false }, () => {
  let cluster: Cluster;
  let one: KubernetesDriver;
  let two: KubernetesDriver;
  let doorPort: number;
  const platform: string[] = [];

  before(async () => {
    cluster = await startCluster();
    doorPort = await freePort();
    const onPlatform = (uid: string, socket: { end(text: string): unknown }): void => {
      platform.push(uid);
      socket.end("the platform");
    };
    one = await cluster.open({ doorPort, doors: `127.0.0.1:${doorPort}`, onPlatform });
    two = await cluster.open({ node: "there" });
  });
  after(() => cluster?.stop());
  beforeEach(() => {
    cluster.api.losesAnswer = () => false;
    cluster.api.conflicts = () => false;
  });

  const spec = (more: Partial<WorkloadSpec> = {}): WorkloadSpec => ({
    ...{ uid: newUid(), name: "box", image: "base-image", env: {}, network: "closed" },
    limits: { memoryMb: 128, cpus: 0.5 },
    ...more,
  });
  const podOf = (uid: string): PodShape | undefined =>
    cluster.api.store.get("pods", NAMESPACE, podName("berth", uid)) as PodShape | undefined;

  test("two servers act on one workload: both see, use, and make it once", async (t) => {
    const wanted = spec({ env: { WORD: "same" } });
    t.after(() => one.destroy(wanted.uid));
    const [made, same] = await Promise.all([one.create(wanted), two.create(wanted)]);
    assert.deepEqual(
      { ...made, node: "", endpoint: { ...made.endpoint, node: "" } },
      { ...same, node: "", endpoint: { ...same.endpoint, node: "" } },
    );
    assert.equal((await run(same, "echo $WORD $FROM_IMAGE")).output, "same yes\n");
    await two.destroy(wanted.uid);
    assert.equal(await one.observe(wanted.uid), null);
    const secrets = cluster.api.store.list("secrets", NAMESPACE).map(({ metadata }) => metadata.name);
    assert.deepEqual(secrets, ["berth-workload-key"], "the cluster removes what a pod owns");
  });

  test("a create whose answer was lost, and an API server that restarts meanwhile, make one workload", async (t) => {
    const wanted = spec();
    t.after(() => one.destroy(wanted.uid));
    let losses = 3;
    cluster.api.losesAnswer = (method) => method === "POST" && losses-- > 0;
    const creating = one.create(wanted);
    await eventually(() => podOf(wanted.uid) !== undefined);
    await cluster.api.stop();
    await cluster.api.start();
    const made = await creating;
    assert.equal((await run(made, "echo on")).output, "on\n");
    assert.equal((await one.list()).filter(({ uid }) => uid === wanted.uid).length, 1);
  });

  test("an end is heard of when watches are silent, old versions are forgotten, and writers conflict", async (t) => {
    const wanted = spec({
      exec: { argv: ["sh", "-c", "while ! test -e /go; do sleep 0.02; done; echo said; exit 3"] },
    });
    t.after(() => one.destroy(wanted.uid));
    const made = await one.create(wanted);
    const waiting = one.waitExit(wanted.uid);
    cluster.api.silence();
    cluster.api.store.compact();
    let conflicts = 2;
    cluster.api.conflicts = (method) => method === "PATCH" && conflicts-- > 0;
    await run(made, "touch /go").catch(() => {}); // the workload may end before it answers
    assert.equal((await waiting)?.exitCode, 3);
    cluster.api.endWatches();
    assert.equal((await two.readOutput(wanted.uid, "stdout", 0, 100)).bytes.toString(), "said\n");
  });

  test("a pod that is evicted is gone with its files, and its command has no code", async (t) => {
    const [box, command] = [spec(), spec({ exec: { argv: ["sleep", "600"] } })];
    t.after(() => Promise.all([box, command].map(({ uid }) => one.destroy(uid))));
    for (const each of [box, command]) {
      await one.create(each);
      cluster.kubelet.evict(podOf(each.uid)?.metadata.uid ?? "");
    }
    assert.equal(await one.observe(box.uid), null);
    const ended = await one.waitExit(command.uid);
    assert.deepEqual([ended?.state, ended?.exitCode, ended?.endedBy], ["exited", undefined, "machine"]);
    assert.equal((await one.readOutput(command.uid, "stdout", 0, 10)).size, 0);
    const again = await one.create(box);
    assert.equal((await run(again, "echo new")).output, "new\n");
  });

  test("a command whose machine is drained has not succeeded, also when it ends politely", async (t) => {
    const polite = "trap 'exit 0' TERM; : > /up; while :; do sleep 0.02; done";
    for (const script of [polite, ": > /up; exec sleep 600"]) {
      const wanted = spec({ exec: { argv: ["sh", "-c", script] } });
      t.after(() => one.destroy(wanted.uid));
      const made = await one.create(wanted);
      await eventually(async () => (await run(made, "test -e /up")).exitCode === 0);
      // The pod ends before the machine's own removal of the object.
      const code = await cluster.kubelet.drain(podOf(wanted.uid)?.metadata.uid ?? "");
      assert.notEqual(code, 0);
      const ended = await one.waitExit(wanted.uid);
      assert.deepEqual([ended?.state, ended?.endedBy], ["exited", "machine"]);
      assert.notEqual(ended?.exitCode, 0);
    }
  });

  test("a pod of the same name that is none of Berth's is left alone", async (t) => {
    const wanted = spec();
    const metadata = { name: podName("berth", wanted.uid), namespace: NAMESPACE };
    const foreign = cluster.api.store.add("pods", { metadata, spec: { containers: [] }, status: { phase: "Running" } });
    t.after(() => cluster.api.store.remove("pods", foreign));
    await assert.rejects(one.create(wanted), { code: "conflict" });
    await one.destroy(wanted.uid);
    assert.equal(podOf(wanted.uid)?.metadata.uid, foreign.metadata.uid);
  });

  test("words of a tenant become no field of a pod", async (t) => {
    const wanted = spec({
      uid: `${newUid()}.A_b`,
      name: "Hostile.Name_--",
      env: {
        "spec.hostNetwork": "true",
        KUBERNETES_SERVICE_HOST: "x",
        SANDBOXD_ADDRESS: "0.0.0.0",
        "a b": "$(id)",
        T: "$x",
      },
      log: { workspace: "w,berth.role=server", kind: "sandbox", name: "n\nx: y", uid: "u" } as never,
    });
    t.after(() => one.destroy(wanted.uid));
    const made = await one.create(wanted);
    const pod = podOf(wanted.uid);
    assert.deepEqual(pod?.metadata.labels, {
      "app.kubernetes.io/managed-by": "berth",
      "berth.instance": "berth",
      "berth.name": "hostile-name",
      "berth.role": "workload",
      "berth.uid": digestOf(wanted.uid),
    });
    const [container] = pod?.spec.containers ?? [];
    assert.deepEqual(
      container?.env.map(({ name }) => name),
      ["SANDBOXD_ADDRESS"],
    );
    assert.equal(container?.command[0], "/run/berth/bin/sandboxd");
    for (const field of ["hostNetwork", "hostPID", "serviceAccountName"]) assert.equal(pod?.spec[field], undefined);
    assert.deepEqual([pod?.spec.automountServiceAccountToken, pod?.spec.restartPolicy], [false, "Never"]);
    assert.equal((await run(made, "printenv T")).output, "$x\n");
    for (const image of ["", "a b", "x\n"]) await assert.rejects(one.create(spec({ image })));
    const mounts = [{ source: { volume: "../x" }, path: "/data" }];
    await assert.rejects(one.create(spec({ mounts })), { code: "bad_request" });
    await assert.rejects(one.create(spec({ env: { BIG: "x".repeat(1_000_000) } })), { code: "bad_request" });
    await assert.rejects(one.create(spec({ exec: { argv: [] } })), { code: "unprocessable" });
    await assert.rejects(one.create(spec({ snapshot: "s" })), { code: "unprocessable" });
  });

  test("a neighbour without the token of a workload gets nothing from it, and no door of its", async (t) => {
    const [mine, other] = [spec({ network: "outbound" }), spec({ network: "outbound" })];
    t.after(() => Promise.all([mine, other].map(({ uid }) => one.destroy(uid))));
    const [victim, attacker] = [await one.create(mine), await one.create(other)];
    const [target, own] = [victim.endpoint, attacker.endpoint];
    assert.ok(target.kind === "tcp" && own.kind === "tcp");
    await assert.rejects(dial({ ...target, token: own.token }, "api"), { code: "bad_gateway" });
    const raw = connect(target.port, target.host).on("error", () => {});
    raw.write("GET /health HTTP/1.1\r\nhost: x\r\n\r\n");
    let text = "";
    raw.on("data", (chunk) => {
      text += chunk;
    });
    await once(raw, "close");
    assert.match(text, /^BERTH [0-9a-f]{32}\n$/);
    // Root of a workload can read its own configuration: the tokens in it are of this workload alone.
    const { output } = await run(attacker, "cat /run/berth/host/config.json");
    const { doors, gate } = JSON.parse(output);
    assert.ok(![doors[0].remote.token, gate.token].includes(target.token));
    assert.ok(doors[0].remote.purpose.includes(other.uid));
    const environment = (await run(attacker, "cat /proc/self/environ; env")).output;
    assert.ok(!environment.includes(gate.token) && !environment.includes(doors[0].remote.token));
    // The door tells the platform which workload calls, whatever the caller says.
    const said = await run(attacker, `bash -c 'exec 3<>/dev/tcp/${own.host}/987 && cat <&3'`);
    assert.equal(said.output, "the platform");
    assert.equal(platform.at(-1), other.uid);
    const forged = connect(doorPort, "127.0.0.1").on("error", () => {});
    forged.write(`platform:${mine.uid}:000000000000 ${"0".repeat(32)} ${"0".repeat(64)}\n`);
    await once(forged.resume(), "close");
    assert.equal(platform.at(-1), other.uid);
    // The token of one door opens no other: a workload without the way out does not make one.
    const wayOut = connect(doorPort, "127.0.0.1");
    t.after(() => wayOut.destroy());
    const { token, purpose } = doors[0].remote;
    await assert.rejects(enterGate(wayOut, { token, purpose: purpose.replace("platform:", "egress:") }), /refused/);
  });

  test("the door token of an earlier life opens nothing, and neither does that of a deleted workload", async (t) => {
    const mine = spec();
    t.after(() => one.destroy(mine.uid));
    const enter = async ({ purpose, token }: { purpose: string; token: string }): Promise<void> => {
      const socket = connect(doorPort, "127.0.0.1").on("error", () => {});
      t.after(() => socket.destroy());
      await enterGate(socket, { purpose, token });
    };
    const doorOf = async () => {
      const { output } = await run(await one.create(mine), "cat /run/berth/host/config.json");
      return JSON.parse(output).doors[0].remote;
    };
    const first = await doorOf();
    await enter(first);
    await one.destroy(mine.uid);
    await assert.rejects(enter(first), /refused/);
    const second = await doorOf();
    assert.notEqual(second.purpose, first.purpose);
    await assert.rejects(enter(first), /refused/);
    await enter(second);
  });

  test("the files that a pod may write to its machine have a size", async (t) => {
    const [small, large] = [spec(), spec({ storageMb: 20_000 })];
    const sizedOf = (uid: string): SizedSpec => {
      const pod = podOf(uid);
      assert.ok(pod);
      return pod.spec as unknown as SizedSpec;
    };
    t.after(() => Promise.all([small, large].map(({ uid }) => one.destroy(uid))));
    for (const [wanted, sizeMb] of [
      [small, 8192],
      [large, 20_000],
    ] as const) {
      await one.create(wanted);
      const { containers, initContainers, volumes } = sizedOf(wanted.uid);
      for (const { resources } of [...containers, ...initContainers])
        assert.equal(Number(resources.limits["ephemeral-storage"]), sizeMb * 2 ** 20);
      for (const { name, emptyDir } of volumes) if (emptyDir) assert.ok(emptyDir.sizeLimit, name);
    }
  });

  test("a workload without a command runs that of its image, as the registry tells", async (t) => {
    await using registry = await startFakeRegistry();
    const registries = createRegistries({
      ...{ privateAddresses: true, allowed: null, mirrors: [], plainHttp: [], credentials: NO_CREDENTIALS },
    });
    t.after(() => registries.stop());
    const config = { Entrypoint: ["sh", "-c"], Cmd: ["echo of the image"] };
    addImage(registry, "team/tool:1", { layers: [], config });
    const commandOf = commandReader(registries);
    assert.deepEqual(await commandOf(`${registry.host}/team/tool:1`), ["sh", "-c", "echo of the image"]);
    await assert.rejects(commandOf(`${registry.host}/team/none:1`), {
      code: "unprocessable",
      message: /Name the command/,
    });
    const third = await cluster.open({
      node: "third",
      commandOf: async () => commandOf(`${registry.host}/team/tool:1`),
    });
    const wanted = spec({ exec: { argv: [] } });
    t.after(() => one.destroy(wanted.uid));
    await third.create(wanted);
    assert.equal((await third.waitExit(wanted.uid))?.exitCode, 0);
    assert.equal((await third.readOutput(wanted.uid, "stdout", 0, 100)).bytes.toString(), "of the image\n");
  });

  test("a private image is pulled with the workload's own credentials, which end with its pod", async (t) => {
    const [username, password] = PRIVATE_LOGIN;
    const credentials = { registry: "private.example", repository: "team/tool", username, password };
    const own = spec({ image: PRIVATE_IMAGE, pull: { credentials } });
    // The machine has the image from here on: a tenant who names it must not run it without credentials.
    const other = spec({ image: PRIVATE_IMAGE, pull: {} });
    t.after(() => Promise.all([own, other].map(({ uid }) => one.destroy(uid))));
    const pulls = () =>
      cluster.api.store.list("secrets", NAMESPACE).filter(({ type }) => type === "kubernetes.io/dockerconfigjson");
    assert.equal((await run(await one.create(own), "echo $FROM_IMAGE")).output, "private\n");
    assert.equal(podOf(own.uid)?.spec.containers[0]?.imagePullPolicy, "Always");
    assert.deepEqual(
      pulls().map(({ metadata }) => metadata.ownerReferences?.[0]?.uid),
      [podOf(own.uid)?.metadata.uid],
    );
    await assert.rejects(one.create(other), { code: "bad_request", message: /401 Unauthorized/ });
    await one.destroy(own.uid);
    assert.deepEqual(pulls(), []);
  });

  test("processes have the user and the folder that the image names, and the daemon stays root", {
    skip: process.getuid?.() === 0 ? false : "needs root",
  }, async (t) => {
    const [box, command] = [USER_IMAGE, USER_IMAGE].map((image) => spec({ image })) as [WorkloadSpec, WorkloadSpec];
    const says = "echo $(id -u):$(id -g) $HOME; pwd";
    command.exec = { argv: ["sh", "-c", says] };
    t.after(() => Promise.all([box, command].map(({ uid }) => one.destroy(uid))));
    const made = await one.create(box);
    assert.equal((await run(made, says)).output, "33:33 /var/www\n/var/tmp\n");
    assert.notEqual((await run(made, "cat /run/berth/host/config.json")).exitCode, 0, "its configuration is root's");
    await one.create(command);
    await one.waitExit(command.uid);
    const { bytes } = await one.readOutput(command.uid, "stdout", 0, 100);
    assert.equal(bytes.toString(), "33:33 /var/www\n/var/tmp\n");
  });

  test("reserved names lead to the base image, other names to the kubelet", async (t) => {
    const named = (image: string): WorkloadSpec => spec({ image });
    const all = ["service/base-image:latest", "berth/py-app", "service/node", "base-image:latest"].map(named);
    t.after(() => Promise.all(all.map(({ uid }) => one.destroy(uid))));
    for (const wanted of all) {
      await one.create(wanted);
      assert.equal(podOf(wanted.uid)?.spec.containers[0]?.image, BASE_IMAGE, wanted.image);
    }
    await assert.rejects(one.create(named("node")), /pull "node"/);
  });

  test("a volume is one workload's, whichever server is asked", async (t) => {
    const id = newUid();
    await one.capabilities.volumes.create({ id, sizeMb: 8 });
    const mounts = [{ source: { volume: id }, path: "/data" }];
    const all = [spec({ mounts }), spec({ mounts })];
    t.after(async () => {
      for (const { uid } of all) await one.destroy(uid);
      await one.capabilities.volumes.destroy(id);
    });
    const outcomes = await Promise.allSettled([one.create(all[0] as WorkloadSpec), two.create(all[1] as WorkloadSpec)]);
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    await assert.rejects(two.capabilities.volumes.destroy(id), { code: "conflict" });
  });

  test("limits that the machine of a pod cannot give are taken back, and an old cluster changes none", async (t) => {
    const wanted = spec();
    t.after(() => {
      cluster.kubelet.resizeProblem = () => null;
      return one.destroy(wanted.uid);
    });
    const made = await one.create(wanted);
    const { resizing } = one.capabilities;
    const grown = { memoryMb: 999_999, cpus: 0.5 };
    cluster.kubelet.resizeProblem = ({ spec }) =>
      JSON.stringify(spec).includes("1048574951424") ? "Infeasible" : null;
    await assert.rejects(resizing.resize(wanted.uid, grown), { code: "conflict", message: /enough capacity/ });
    assert.deepEqual((await two.observe(wanted.uid))?.limits, wanted.limits);
    await run(made, "(held=$(head -c 80000000 /dev/zero | tr '\\0' x); sleep 600) > /dev/null 2>&1 &");
    const shrunk = { memoryMb: 64, cpus: 0.5 };
    await eventually(async () => (await one.stats(wanted.uid)).memoryBytes > shrunk.memoryMb * 2 ** 20);
    await assert.rejects(resizing.resize(wanted.uid, shrunk), { code: "conflict", message: /are in use/ });
    assert.notEqual(await one.capability("resizing"), null);
    cluster.api.minor = "29+";
    t.after(() => {
      cluster.api.minor = "36";
    });
    const old = await cluster.open({ node: "old" });
    assert.equal(await old.capability("resizing"), null);
  });

  test("a log is kept by one server, and by another when that one is gone", async (t) => {
    const log = { workspace: "w", plural: "sandboxes", name: "n", uid: "u" } as never;
    const wanted = spec({ log });
    t.after(() => one.destroy(wanted.uid));
    await one.create(wanted);
    const keepers = async (...drivers: KubernetesDriver[]): Promise<boolean[]> =>
      Promise.all(drivers.map(async (each) => (await each.observe(wanted.uid))?.log !== undefined));
    await two.takeLogs();
    assert.deepEqual(await keepers(one, two), [true, false]);
    const third = await cluster.open({ node: "third", isLive: (node) => node !== "here" });
    await third.takeLogs();
    assert.deepEqual(await keepers(one, two, third), [false, false, true]);
    await third.takeLogs();
    assert.deepEqual(await keepers(one, two, third), [false, false, true]);
  });

  test("the network policy lets servers in and doors out, and nothing else", async () => {
    const [policy] = cluster.api.store.list("networkpolicies", NAMESPACE);
    const server = { podSelector: { matchLabels: { "berth.instance": "berth", "berth.role": "server" } } };
    assert.ok(policy);
    const { podSelector, policyTypes, ingress } = policy.spec as Record<string, unknown>;
    assert.deepEqual(podSelector, { matchLabels: { "berth.instance": "berth", "berth.role": "workload" } });
    assert.deepEqual(policyTypes, ["Ingress", "Egress"]);
    assert.deepEqual(ingress, [{ from: [server], ports: [{ protocol: "TCP", port: 8982 }] }]);
  });
});
