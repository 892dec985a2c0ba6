/** Everything that runs has the same outbound rules, egress addresses and filled-in secrets on the wire. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testAuthority } from "../tls-credential.ts";
import { ownMachineMissing, runOnOwnMachine, testFolder } from "./own-machine.ts";

for (const mode of ["nat", "proxy"])
  test(`builds, sandboxes, agents, functions, applications and jobs leave by the same rules: ${mode}`, {
    skip: ownMachineMissing,
  }, async (t) => {
    const folder = testFolder(t);
    const authority = testAuthority("world");
    const { certificate, key } = authority.credentialOf("api.test");
    const files = { "authority.pem": authority.certificate, "host.pem": certificate, "host.key": key };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    await runOnOwnMachine(t, {
      ...{ name: "every-workload-child.ts", args: [mode, folder], hasNat: mode === "nat" },
      env: { NODE_EXTRA_CA_CERTS: join(folder, "authority.pem") },
    });
  });
