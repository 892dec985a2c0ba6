/** The Helm chart: what it renders, and what holds for every rendering. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { SETTINGS } from "../../src/config.ts";
import {
  CASES,
  CHART,
  chartDigest,
  DIGEST_FILE,
  findHelm,
  goldenFile,
  HELM_MISSING,
  helm,
  render,
} from "./renderings.ts";

interface Container {
  name: string;
  env?: { name: string; value?: string }[];
  securityContext?: Record<string, unknown>;
  resources?: { limits?: { memory?: string } };
}

interface KubernetesObject {
  kind: string;
  metadata: { name: string; namespace?: string };
  rules?: { apiGroups: string[]; resources: string[]; verbs: string[] }[];
  spec?: {
    template?: { metadata: { labels: Record<string, string> }; spec: PodSpec };
    selector?: { matchLabels?: Record<string, string> };
  };
}

interface PodSpec {
  enableServiceLinks?: boolean;
  containers: Container[];
  securityContext: { runAsNonRoot?: boolean; seccompProfile?: { type: string } };
}

const objectsOf = (name: string): KubernetesObject[] =>
  parseAllDocuments(readFileSync(goldenFile(name), "utf8")).map((each) => each.toJS() as KubernetesObject);
const all = Object.keys(CASES).flatMap((name) => objectsOf(name).map((object) => ({ name, object })));
const templates = globSync("templates/*", { cwd: CHART }).map((file) => readFileSync(join(CHART, file), "utf8"));

suite("the chart", () => {
  test("the golden files were rendered from this chart", () => {
    const message = "The chart changed: run `node test/helm/renderings.ts`, which needs helm.";
    assert.equal(readFileSync(DIGEST_FILE, "utf8").trim(), chartDigest(), message);
  });

  test("templates use values that values.yaml has and values.schema.json describes", () => {
    const values = parse(readFileSync(join(CHART, "values.yaml"), "utf8")) as object;
    const schema = JSON.parse(readFileSync(join(CHART, "values.schema.json"), "utf8")) as { properties: object };
    const used = new Set(
      templates.flatMap((text) => [...text.matchAll(/\.Values\.([A-Za-z.]+)/g)].map(([, path]) => path)),
    );
    assert.ok(used.size > 40, String(used.size));
    for (const path of used) {
      const steps = (path ?? "").split(".");
      const inValues = steps.reduce<unknown>((at, step) => (at as Record<string, unknown> | undefined)?.[step], values);
      assert.notEqual(inValues, undefined, `.Values.${path} is not in values.yaml`);
      const described = steps.reduce<unknown>(
        (at, step) => (at as { properties?: Record<string, unknown> } | undefined)?.properties?.[step],
        schema,
      );
      assert.notEqual(described, undefined, `.Values.${path} is not in values.schema.json`);
    }
    assert.deepEqual(Object.keys(schema.properties).sort(), ["global", ...Object.keys(values)].sort());
  });

  test("the server gets settings that exist", () => {
    const known = new Set<string>([...Object.values(SETTINGS).map(({ env }) => env), "HOME", "POSTGRES_PASSWORD"]);
    const servers = all.filter(({ object }) => object.kind === "Deployment");
    assert.equal(servers.length, Object.keys(CASES).length);
    for (const { name, object } of servers)
      for (const { env = [] } of object.spec?.template?.spec.containers ?? []) {
        const names = env.map((each) => each.name);
        assert.deepEqual(
          names.filter((each) => !known.has(each)),
          [],
          name,
        );
        assert.equal(new Set(names).size, names.length, `${name} sets a variable twice`);
        assert.equal(
          object.spec?.template?.spec.enableServiceLinks,
          false,
          "services of the cluster become no settings",
        );
      }
  });

  test("rights are those of one namespace, without wildcards, and read no secret but one", () => {
    const roles = all.filter(({ object }) => object.rules);
    assert.equal(roles.length, Object.keys(CASES).length);
    for (const { name, object } of roles) {
      assert.equal(object.kind, "Role");
      assert.equal(object.metadata.namespace, name === "ingress" ? "berth-workloads" : "platform");
      for (const { apiGroups, resources, verbs, ...rest } of object.rules ?? []) {
        assert.ok(![...apiGroups, ...resources, ...verbs].includes("*"));
        if (resources.includes("secrets") && verbs.some((verb) => verb !== "create"))
          assert.deepEqual({ verbs, ...rest }, { verbs: ["get"], resourceNames: ["berth-workload-key"] });
        if (resources.includes("networkpolicies") && !verbs.includes("create"))
          assert.deepEqual(rest, { resourceNames: ["berth-workloads"] });
      }
    }
    assert.ok(!all.some(({ object }) => /^Cluster/.test(object.kind)));
  });

  test("every container is bounded, has no rights of root, and writes to volumes alone", () => {
    for (const { name, object } of all) {
      const pod = object.spec?.template;
      if (!pod) continue;
      assert.equal(pod.spec.securityContext.runAsNonRoot, true, name);
      assert.equal(pod.spec.securityContext.seccompProfile?.type, "RuntimeDefault", name);
      for (const [label, value] of Object.entries(object.spec?.selector?.matchLabels ?? {}))
        assert.equal(pod.metadata.labels[label], value, `${name}: ${object.metadata.name} selects its own pods`);
      for (const { securityContext, resources } of pod.spec.containers) {
        const expected = {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        };
        assert.deepEqual(securityContext, expected);
        assert.ok(resources?.limits?.memory);
      }
    }
  });
});

const program = findHelm();
suite("the chart with helm", { skip: program === null ? HELM_MISSING : false }, () => {
  const run = program ?? "";

  test("helm lint finds nothing, and the golden files are what helm renders", () => {
    for (const [name, values] of Object.entries(CASES)) {
      assert.match(helm(run, ["lint", CHART, "--strict"], values), /0 chart\(s\) failed/);
      assert.equal(render(run, values), readFileSync(goldenFile(name), "utf8"), name);
    }
  });

  test("values that cannot work are refused with the reason", () => {
    const url = "postgres://db.example.net/berth";
    const refusals: [values: object, reason: RegExp][] = [
      [{}, /set exactly one of database\.url, database\.existingSecret and database\.bundled\.enabled/],
      [{ database: { url, existingSecret: "x" } }, /exactly one of database/],
      [{ database: { url: "mysql://x" } }, /\/database\/url/],
      [{ database: { url }, ingress: { enabled: true } }, /ingress\.enabled needs publicUrl/],
      [{ database: { url }, publicUrl: "https://a.example", gateway: { enabled: true } }, /needs gateway\.parentRefs/],
      [{ database: { url }, secrets: { secretKey: "short" } }, /\/secrets\/secretKey/],
      [{ database: { url }, settings: { PATH: "/x" } }, /PATH/],
      [{ database: { url }, replica: 3 }, /replica/],
      [{ database: { url }, workloads: { instance: "a-name-that-is-too-long" } }, /\/workloads\/instance/],
    ];
    for (const [values, reason] of refusals) assert.throws(() => render(run, values), reason);
  });
});
