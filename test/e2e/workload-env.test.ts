/** What code is told by the platform, as code sees it, and that it can act on it. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { get, type IncomingMessage } from "node:http";
import { after, before, describe, test } from "node:test";
import { deploySuite, isDeployed, says } from "../deploy-suite.ts";
import { machineSkip } from "../sandbox-suite.ts";

/** Shows its environment, and fetches what it is asked to with a token of its own. */
const MIRROR = {
  "index.js": `
    const { BL_API_URL, BL_CLIENT_CREDENTIALS, HOST, PORT } = process.env;
    require("node:http").createServer(async (request, response) => {
      const url = request.headers["x-fetch"];
      if (!url) return response.end(JSON.stringify(process.env));
      const headers = { authorization: "Basic " + BL_CLIENT_CREDENTIALS };
      const body = new URLSearchParams({ grant_type: "client_credentials" });
      const { access_token } = await (await fetch(BL_API_URL + "/oauth/token", { method: "POST", headers, body })).json();
      const answer = await fetch(url, { headers: { authorization: "Bearer " + access_token } }).catch((error) => error.cause);
      response.end(answer.status + " " + (await answer.text?.() ?? answer.message));
    }).listen(PORT, HOST);`,
};

describe("what a workload is told", { skip: machineSkip }, () => {
  const suite = deploySuite();
  const deploy = async (plural: string, name: string, spec: object, files: Record<string, string>) => {
    const body = { metadata: { name }, spec: { runtime: { memory: 256 }, ...spec } };
    const made = await suite.call("POST", `/${plural}?upload=true`, { body });
    assert.equal((await suite.send(made, files)).status, 200);
    await suite.until(async () => (await suite.call("GET", `/${plural}/${name}`)).body, isDeployed);
  };
  before(async () => {
    await suite.start();
    await deploy("agents", "neigh-bour", {}, says("next door"));
    const spec = { agents: ["neigh-bour"], functions: ["all"], region: "local" };
    await deploy("functions", "mirror", { ...spec, runtime: { memory: 256, generation: "mk2" } }, MIRROR);
  });
  after(() => suite.stop());

  const internal = (kind: string, name: string): string =>
    `bl-prod-${createHash("md5").update(`main-${kind}-${name}`).digest("hex")}`;

  test("all variables of the contract are there", async () => {
    const env = (await (await suite.ask("mirror", {}, "functions")).json()) as Record<string, string>;
    assert.equal(env.BL_SERVER_PORT, env.PORT);
    assert.match(Buffer.from(env.BL_CLIENT_CREDENTIALS ?? "", "base64").toString(), /^[^:]+:[^:]+$/);
    const told = {
      HOST: "0.0.0.0",
      PORT: "8080",
      BL_SERVER_HOST: "0.0.0.0",
      BL_WORKSPACE: "main",
      BL_NAME: "mirror",
      BL_TYPE: "function",
      BL_REGION: "local",
      BL_LOG_LEVEL: "info",
      BL_DEBUG_TELEMETRY: "false",
      BL_ENABLE_OPENTELEMETRY: "false",
      BL_CLOUD: "true",
      BL_GENERATION: "mk2",
      BL_RUN_INTERNAL_HOST: "run.localhost:987",
      BL_RUN_INTERNAL_HOSTNAME: "run.localhost:987",
      BL_RUN_INTERNAL_PROTOCOL: "http",
      BL_AGENT_NEIGH_BOUR_SERVICE_NAME: internal("agent", "neigh-bour"),
      BL_FUNCTION_MIRROR_SERVICE_NAME: internal("function", "mirror"),
      DO_NOT_TRACK: "1",
    };
    assert.deepEqual(Object.fromEntries(Object.keys(told).map((name) => [name, env[name]])), told);
  });

  test("a neighbour answers at its internal name, to who may call it", async () => {
    const ask = async (url: string): Promise<string> =>
      (await suite.ask("mirror", { headers: { "x-fetch": url } }, "functions")).text();
    assert.match(await ask(`http://${internal("agent", "neigh-bour")}.run.localhost:987/`), /^200 .*next door/);
    assert.match(await ask(`http://${internal("agent", "nobody")}.run.localhost:987/`), /^404 /);
    // The name opens nothing by itself, wherever it is used.
    const host = `${internal("agent", "neigh-bour")}.run.localhost`;
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    get(suite.platform().url, { headers: { host } }, resolve).on("error", reject);
    const answer = await promise;
    answer.resume();
    assert.equal(answer.statusCode, 401);
  });
});
