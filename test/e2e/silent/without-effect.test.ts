/** What the platform cannot do is refused with the field, or said in an event and a warning. */
import assert from "node:assert/strict";
import { totalmem } from "node:os";
import { after, before, describe, test } from "node:test";
import { readWarnings } from "../../../src/contract/warnings.ts";
import { type Answer, startTestPlatform, type TestPlatform } from "../../platform.ts";

let platform: TestPlatform;
before(async () => {
  platform = await startTestPlatform();
});
after(() => platform.stop());

const make = (path: string, name: string, spec: object): Promise<Answer> =>
  platform.call("POST", path, { body: { metadata: { name }, spec } });
const put = (path: string, body: unknown): Promise<Answer> => platform.call("PUT", path, { body });
const warnings = ({ headers }: Answer): string[] => readWarnings(headers.get("warning"));

const TOO_MUCH_MB = Math.min(1_048_576, Math.ceil(totalmem() / 2 ** 20) + 1);
const beyond = TOO_MUCH_MB === 1_048_576 ? describe.skip : describe;

describe("refused by name", () => {
  const CASES: readonly (readonly [title: string, path: string, spec: object, message: RegExp])[] = [
    ["a VPC that is not there", "/sandboxes", { vpc: "nowhere" }, /^spec\.vpc: there is no VPC 'nowhere'/],
    [
      "a gateway that is not there",
      "/sandboxes",
      { network: { egress: { mode: "dedicated", gateway: "none" } } },
      /^spec\.network\.egress\.gateway: there is no egress gateway 'none' in the VPC 'default'/,
    ],
    [
      "a kernel option that does not exist",
      "/sandboxes",
      { runtime: { extraArgs: { tunn: "enabled" } } },
      /^spec\.runtime\.extraArgs\.tunn: is not an option; there are iptables, nfs, tun/,
    ],
    ...(["/sandboxes", "/agents", "/functions", "/jobs", "/applications"] as const).flatMap((path) => [
      [
        `a domain of ${path} that is none`,
        path,
        { network: { proxy: { allowedDomains: ["ok.test", "https://x.test/"] } } },
        /^spec\.network\.proxy\.allowedDomains\[1\]: 'https:\/\/x\.test\/' is not a host/,
      ] as const,
      [
        `a secret of ${path} that is nowhere`,
        path,
        { network: { proxy: { routing: [{ destinations: ["x.test"], headers: { a: "{{SECRET:b}}" } }] } } },
        /^spec\.network\.proxy\.routing\[0\]\.headers\.a: \{\{SECRET:b\}\} names no secret of this route/,
      ] as const,
    ]),
    [
      "a range that is none, in a policy",
      "/policies",
      { type: "network", network: { firewall: { rules: [{ action: "deny", cidr: "10.0.0.1/8" }] } } },
      /^spec\.network\.firewall\.rules\[0\]\.cidr: '10\.0\.0\.1\/8' has bits set beyond its prefix/,
    ],
    [
      "a network policy without rules",
      "/policies",
      { type: "network" },
      /^spec\.network: is needed by a policy of type network/,
    ],
    [
      "a GitHub runner",
      "/jobs",
      { githubRunner: { repositories: ["a/b"] } },
      /^spec\.githubRunner: this server does not register runners at GitHub/,
    ],
  ];
  for (const [title, path, spec, message] of CASES)
    test(title, async () => {
      const refused = await make(path, "refused", spec);
      assert.equal(refused.status, 400, JSON.stringify(refused.body));
      assert.match(refused.body.message, message);
      assert.equal((await platform.call("GET", `${path}/refused`)).status, 404);
    });

  test("code for a sandbox, on a driver that builds no images", async () => {
    for (const query of ["upload=true", "upload=true&createIfNotExist=true"]) {
      const refused = await platform.call("POST", `/sandboxes?${query}`, { body: { metadata: { name: "coded" } } });
      assert.equal(refused.status, 422);
      assert.match(refused.body.message, /which has no building of images/);
    }
    assert.equal((await platform.call("GET", "/sandboxes/coded")).status, 404);
    assert.equal((await platform.call("POST", "/sandboxes?upload=false", { body: {} })).status, 200);
  });

  test("what is there is taken, and can be written back", async () => {
    await make("/vpcs", "lab", {});
    await make("/vpcs/lab/egressgateways", "out", {});
    const network = { egress: { mode: "dedicated", gateway: "out" } };
    const elsewhere = await make("/sandboxes", "wired", { network });
    assert.equal(elsewhere.status, 400, "the gateway is in another VPC");
    const made = await make("/sandboxes", "wired", { vpc: "lab", network });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    const back = await put("/sandboxes/wired", made.body);
    assert.equal(back.status, 200, JSON.stringify(back.body));
  });

  test("outbound rules without an effect say so in the answer", async () => {
    const network = {
      firewall: {
        rulesets: ["dedicated-ip"],
        rules: [
          { action: "deny", port: 22 },
          { action: "allow", protocol: "udp" },
        ],
      },
    };
    const made = await make("/sandboxes", "udp", { network });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    const [udp = "", dedicated = ""] = warnings(made);
    assert.match(udp, /^spec\.network\.firewall\.rules\[1\] is kept and has no effect: .*no UDP/);
    assert.match(dedicated, /^spec\.network\.firewall\.rulesets\[0\] is kept and has no effect: .*own address/);
    assert.deepEqual(warnings(await put("/sandboxes/udp", made.body)), [], "the same once more");
    const odd = await make("/sandboxes", "odd", { network: { egress: { mode: "shared" } } });
    assert.match(warnings(odd).join(), /egress\.mode is kept and has no effect/);
    const lost = await make("/agents", "lost", { network: { egress: { mode: "dedicated" } } });
    assert.match(lost.body.message, /^spec\.network\.egress\.gateway: must name/);
    const policy = await make("/policies", "udp", {
      type: "network",
      network: { firewall: { rules: [{ action: "allow", protocol: "udp" }] } },
    });
    assert.match(warnings(policy).join(), /rules\[0\] is kept and has no effect/);
  });

  test("routes of a running sandbox whose programs do not trust them yet are told in an event, once", async () => {
    const made = await make("/sandboxes", "untrusting", {});
    const network = { proxy: { routing: [{ destinations: ["a.test"], headers: { "x-key": "1" } }] } };
    for (let round = 0; round < 2; round++) {
      const changed = await put("/sandboxes/untrusting", { ...made.body, spec: { ...made.body.spec, network } });
      assert.equal(changed.status, 200, JSON.stringify(changed.body));
      const told = changed.body.events.filter(({ type }: { type: string }) => type === "routes-need-a-restart");
      assert.equal(told.length, 1);
      assert.equal(changed.body.errors[0].code, "ROUTES_NEED_A_RESTART");
    }
  });

  test("a job without repositories may say that it is no runner", async () => {
    assert.equal((await make("/jobs", "no-runner", { githubRunner: { repositories: [] } })).status, 200);
  });
});

beyond("memory beyond the machine", () => {
  for (const [path, spec] of [
    ["/sandboxes", { runtime: { memory: TOO_MUCH_MB } }],
    ["/agents", { runtime: { memory: TOO_MUCH_MB } }],
    ["/functions", { runtime: { memory: TOO_MUCH_MB } }],
    ["/jobs", { runtime: { memory: TOO_MUCH_MB } }],
    ["/applications", { memory: TOO_MUCH_MB }],
  ] as const)
    test(`${path} are refused`, async () => {
      const refused = await make(path, "huge", spec);
      assert.equal(refused.status, 400, JSON.stringify(refused.body));
      assert.match(refused.body.message, /memory: must not be above \d+ MB, which is what this machine has/);
      assert.equal((await make(path, "modest", {})).status, 200, "the default fits the machine");
    });
});

describe("said in an event and a warning", () => {
  const CASES: readonly [path: string, spec: object, member: string][] = [
    ["/drives", { size: 10 }, "size"],
    ["/jobs", { runtime: { diskPercent: 50 } }, "runtime.diskPercent"],
    ["/jobs", { runtime: { ports: [{ target: 80 }] } }, "runtime.ports"],
    ["/jobs", { runtime: { storageMb: 512 } }, "runtime.storageMb"],
    ["/sandboxes", { runtime: { extraArgs: { tun: "enabled" } } }, "runtime.extraArgs.tun"],
    ["/agents", { repository: { type: "git", url: "https://example.test/x" } }, "repository"],
  ];
  for (const [index, [path, spec, member]] of CASES.entries())
    test(`${path}: spec.${member}`, async () => {
      const name = `idle-${index}`;
      const made = await make(path, name, spec);
      assert.equal(made.status, 200, JSON.stringify(made.body));
      const said = `spec.${member} is kept and has no effect: `;
      assert.deepEqual(
        warnings(made).map((text) => text.slice(0, said.length)),
        [said],
      );
      const events = made.body.events.filter((event) => event.type === "without-effect");
      assert.equal(events.length, 1);
      assert.ok(events[0]?.message.startsWith(said));
      const back = await put(`${path}/${name}`, made.body);
      assert.equal(back.status, 200, JSON.stringify(back.body));
      assert.deepEqual(warnings(back), [], "the same again is not said again");
      const strict = await platform.call("POST", path, {
        body: { metadata: { name: `${name}-strict` }, spec },
        headers: { prefer: "handling=strict" },
      });
      assert.equal(strict.status, 200, "what is known is no typing error");
    });

  test("one that is set later is said later", async () => {
    const { body } = await make("/jobs", "later", {});
    const changed = await put("/jobs/later", {
      ...body,
      spec: { ...body.spec, runtime: { ...body.spec.runtime, diskPercent: 10 } },
    });
    assert.equal(warnings(changed).length, 1);
    assert.match(changed.body.events.at(-1).message, /spec\.runtime\.diskPercent is kept and has no effect/);
  });

  test("what asks for nothing special is not worth a word", async () => {
    const spec = { runtime: { extraArgs: { tun: "disabled" }, snapshotEnabled: true } };
    assert.deepEqual(warnings(await make("/sandboxes", "plain", spec)), []);
  });
});

describe("models and connections that cannot be used", () => {
  test("a model without a provider or a connection is not deployed, and says why", async () => {
    for (const [name, spec] of [
      ["bare", {}],
      ["keyless", { runtime: { type: "openai" } }],
      ["unknown", { runtime: { type: "my-own" } }],
    ] as const) {
      const made = await make("/models", name, spec);
      assert.equal(made.status, 200);
      assert.equal(made.body.status, "FAILED", name);
      assert.match(made.body.events.at(-1).message, /names no connection/);
      assert.equal(warnings(made).length, 1);
    }
    assert.equal((await make("/models", "mocked", { runtime: { type: "mock" } })).body.status, "DEPLOYED");
    assert.equal((await make("/models", "off", { enabled: false })).body.status, "DEACTIVATED");
  });

  test("it is deployed once it names a connection", async () => {
    await make("/integrations/connections", "key", { integration: "openai", secret: { apiKey: "sk-test" } });
    const { body } = await make("/models", "fixed", { runtime: { type: "openai" } });
    assert.equal(body.status, "FAILED");
    const changed = await put("/models/fixed", { ...body, spec: { ...body.spec, integrationConnections: ["key"] } });
    assert.equal(changed.body.status, "DEPLOYED");
  });

  test("a connection says what it lacks", async () => {
    const path = "/integrations/connections";
    const good = await make(path, "good", { integration: "github", secret: { GITHUB_TOKEN: "x" } });
    assert.equal(good.body.status, "DEPLOYED");
    assert.deepEqual(warnings(good), []);
    const lacking = await make(path, "lacking", { integration: "google-drive", secret: { CLIENT_ID: "x" } });
    assert.equal(lacking.body.status, "FAILED");
    assert.match(lacking.body.events.at(-1).message, /spec\.secret lacks CLIENT_SECRET, REFRESH_TOKEN/);
    const unknown = await make(path, "unknown", { integration: "githib", secret: { TOKEN: "x" } });
    assert.equal(unknown.status, 200, "code that names it gets its secrets");
    assert.equal(unknown.body.status, "FAILED");
    assert.match(warnings(unknown)[0] ?? "", /There is no integration 'githib' here.*did you mean 'github'\?/);
    const own = await make(path, "own", { integration: "my-llm", config: { baseUrl: "https://llm.example.test" } });
    assert.equal(own.body.status, "DEPLOYED");
    const read = await platform.call("GET", `${path}/good`);
    const back = await put(`${path}/good`, read.body);
    assert.equal(back.body.status, "DEPLOYED", "masked secrets count");
    const keyless = await make(path, "keyless", { integration: "openai" });
    assert.match(keyless.body.events.at(-1).message, /spec\.secret lacks apiKey/);
  });
});
