import assert from "node:assert/strict";
import { test } from "node:test";
import { clientValue, PEER_FIELD, takePeerField } from "./peer-field.ts";

test("every address that a connection can have is handed on, the zone of a bridge too", () => {
  for (const address of ["127.0.0.1", "::1", "::ffff:10.0.0.1", "fe80::1%eth0", "fe80::1%br-12ab34cd56ef"]) {
    const client = { address, secure: true };
    assert.deepEqual(takePeerField([PEER_FIELD, clientValue(client)]), { from: "client", client });
  }
});

test("the workload that a client is in is handed on; an address is never read as one", () => {
  const client = { address: undefined, secure: false, workload: "0199-uid" };
  assert.deepEqual(takePeerField([PEER_FIELD, clientValue(client)]), { from: "client", client });
  for (const value of ["client @ http", "client @a b http", "client @a@b http", `client @${"a".repeat(65)} http`])
    assert.equal(takePeerField([PEER_FIELD, value]), null, value);
});

test("a head that names two clients, or one that cannot be read, names none", () => {
  const twice = [PEER_FIELD, "client ::1 http", "X-Berth-Peer", "server"];
  assert.equal(takePeerField(twice), null);
  for (const value of ["", "client", "client a b http", "client ::1 ftp", " server", "client ::1,::2 http"])
    assert.equal(takePeerField([PEER_FIELD, value]), null, value);
});
