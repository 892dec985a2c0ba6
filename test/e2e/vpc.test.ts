/** Workloads of one VPC reach each other by name through the egress proxy, which every machine has. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { makeUser } from "../identities.ts";
import { machineSkip, sandboxSuite } from "../sandbox-suite.ts";

const suite = sandboxSuite();
const SERVER = `require("http").createServer((q, s) => s.end("web of " + require("os").hostname())).listen(7000, "127.0.0.1", () => console.log("up"))`;
const VPC = "/vpcs/default";

describe("VPCs", { skip: machineSkip }, () => {
  before(async () => {
    await suite.start({ standby_after: "1", vpc_networks: "10.20.0.0/16,team=10.30.0.0/16,fd00:20::/32" });
    const { call } = suite.platform();
    assert.equal((await call("POST", "/workspaces", { body: { name: "other" } })).status, 200);
    await suite.create("caller");
    await suite.create("web");
    const theirs = { metadata: { name: "theirs" }, spec: { runtime: { memory: 512 } } };
    assert.equal((await call("POST", "/sandboxes", { body: theirs, workspace: "other" })).status, 200);
    await suite.inside("web", "POST", "/process", {
      command: `node -e '${SERVER}'`,
      name: "server",
      waitForPorts: [7000],
    });
  });
  after(async () => {
    await suite.platform().call("DELETE", "/sandboxes/theirs", { workspace: "other" });
    await suite.stop();
  });

  const put = (spec: object, path = VPC) => suite.platform().call("PUT", path, { body: { spec } });

  /** What the proxy answers to a request of a sandbox, head and body. */
  async function ask(host: string, port = 7000, from = "caller"): Promise<string> {
    const request = `GET http://${host}:${port}/ HTTP/1.1\\r\\nHost: ${host}\\r\\nConnection: close\\r\\n\\r\\n`;
    const line = `exec 3<>/dev/tcp/127.0.0.1/988; printf "${request}" >&3; timeout 50 cat <&3`;
    return (await suite.exec(from, `bash -c '${line}'`)).body.logs;
  }

  test("nobody reaches another workload by default, and an event names the setting", async () => {
    assert.match(await ask("web.default.internal"), /403 .*firewall_blocked.*VPC 'default'/is);
    await suite.reaches("caller", ({ events }) =>
      events.some(
        ({ type, message }) => type === "outbound-refused" && message?.includes("vpc default: spec.internal"),
      ),
    );
  });

  test("with internal workloads reach each other, a sleeping one wakes, and no door of another one opens", async () => {
    const set = await put({ internal: true });
    assert.equal(set.body.spec.internal, true);
    await suite.reaches("web", ({ state }) => state === "STANDBY");
    assert.match(await ask("web.default.internal"), /200 OK.*web of web/s);
    assert.match(await ask("WEB.Default.Internal."), /200 OK.*web of web/s, "a name has many spellings");
    assert.match(await ask("web.sandbox.default.internal"), /200 OK.*web of web/s);
    for (const door of [987, 988]) assert.match(await ask("web.default.internal", door), /403 .*port_forbidden/is);
    assert.match(await ask("web.default.internal", 25), /403 .*port_forbidden/is);
    assert.match(await ask("web.default.internal", 7999), /502 .*connection_failed/is);
  });

  test("names of other workspaces, VPCs and kinds lead nowhere", async () => {
    await put({ internal: true });
    const { call } = suite.platform();
    await call("POST", "/vpcs", { body: { metadata: { name: "lab" }, spec: { internal: true } } });
    for (const name of ["theirs", "web.agent", "a.web", "web.default", "nobody", "-"])
      assert.match(await ask(`${name}.default.internal`), /502 .*name_not_resolved|400 .*malformed/is, name);
    await suite.create("stranger", { vpc: "lab" });
    assert.match(await ask("web.lab.internal", 7000, "stranger"), /502 .*name_not_resolved/is);
    assert.doesNotMatch(await ask("web.default.internal", 7000, "stranger"), /200 OK/);
    assert.match(await ask("stranger.default.internal"), /502 .*name_not_resolved/is);
    assert.equal((await call("DELETE", "/vpcs/lab")).status, 409, "a VPC with a workload stays");
  });

  test("outbound rules hold for names of the VPC", async () => {
    await put({ internal: true });
    const { call } = suite.platform();
    const network = (proxy: object) =>
      call("PUT", "/sandboxes/caller", { body: { spec: { runtime: { memory: 512 }, network: { proxy } } } });
    await network({ allowedDomains: ["example.com"] });
    assert.match(await ask("web.default.internal"), /403 .*allowedDomains/is);
    await network({ allowedDomains: ["*.default.internal"] });
    assert.match(await ask("web.default.internal"), /200 OK.*web of web/s);
    await call("PUT", "/sandboxes/caller", { body: { spec: { runtime: { memory: 512 }, network: {} } } });
  });

  test("an open connection is cut when internal is turned off", async () => {
    await put({ internal: true });
    const script = `const s = require("net").connect(988, "127.0.0.1"); s.write("CONNECT web.default.internal:7000 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"); s.once("data", (d) => console.log(String(d).split("\\r")[0])).on("error", () => {}).on("close", () => console.log("cut"))`;
    await suite.inside("caller", "POST", "/process", { command: `node -e '${script}'`, name: "tunnel" });
    const logs = async (word: string): Promise<void> => {
      while (!String((await suite.inside("caller", "GET", "/process/tunnel/logs")).body.logs).includes(word));
    };
    await logs("200 Connection Established");
    await put({ internal: false });
    await logs("cut");
    assert.match(await ask("web.default.internal"), /403 .*firewall_blocked/is);
  });

  test("only an admin sets routes, and only to networks that the operator offers the workspace", async () => {
    const { call, app } = suite.platform();
    assert.equal((await put({ routes: ["10.20.3.0/24", "fd00:20:1::/48"] })).status, 200);
    const refused: [string, RegExp][] = [
      ["10.0.0.0/8", /no network that the operator offers/],
      ["10.30.0.0/16", /no network that the operator offers/],
      ["0.0.0.0/0", /no network that the operator offers/],
      ["169.254.0.0/16", /no workload reaches/],
      ["127.0.0.0/8", /no workload reaches/],
      ["198.18.0.0/15", /no workload reaches/],
      ["fd62:6572:7468:1::/64", /no workload reaches/],
      ["::ffff:10.20.0.0/112", /IPv4 address within/],
      ["fe80::/10", /no workload reaches/],
      ["10.20.0.1/16", /bits set/],
      ["everything", /not a range/],
    ];
    for (const [cidr, rule] of refused) {
      const { status, body } = await put({ routes: ["10.20.0.0/16", cidr] });
      assert.equal(status, 400, cidr);
      assert.match(JSON.stringify(body), rule, cidr);
      assert.match(JSON.stringify(body), /spec\.routes\[1\]/);
    }
    assert.deepEqual((await call("GET", VPC)).body.spec.routes, ["10.20.3.0/24", "fd00:20:1::/48"], "nothing changed");
    const { accountId } = (await app.store.workspaces.get("main")) ?? assert.fail();
    const member = await makeUser(app.store, accountId, "member", { main: "member" });
    const asMember = (spec: object) => call("PUT", VPC, { body: { spec }, key: member.key });
    assert.equal((await asMember({ routes: ["10.20.0.0/16"] })).status, 403);
    assert.equal((await asMember({ internal: true, routes: ["10.20.3.0/24", "fd00:20:1::/48"] })).status, 200);
  });

  test("a name that was deleted leads nowhere", async () => {
    await put({ internal: true });
    const { call } = suite.platform();
    await call("DELETE", "/sandboxes/web");
    const body = { metadata: { name: "web" }, spec: { runtime: { memory: 512 } } };
    assert.equal((await call("POST", "/sandboxes", { body, workspace: "other" })).status, 200);
    assert.match(await ask("web.default.internal"), /502 .*name_not_resolved/is);
    await call("DELETE", "/sandboxes/web", { workspace: "other" });
  });
});
