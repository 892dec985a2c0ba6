import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../client/api-error.ts";
import { describeFailure } from "./failure.ts";

const failureOf = (status: number): string =>
  describeFailure(new ApiError({ status, code: "x", message: "No.", requestId: "req-1" }));

test("only a fault of the server is told with the id of its request", () => {
  assert.equal(failureOf(500), "berth: No. (request req-1)");
  assert.equal(failureOf(409), "berth: No.");
});

test("a certificate that is not trusted leads to berth trust, not to berth up", () => {
  const described = (why: string): string =>
    describeFailure(new ApiError({ status: 0, code: "unreachable", message: `https://a does not answer (${why}).` }));
  assert.match(described("SELF_SIGNED_CERT_IN_CHAIN"), /next: trust a server .* `berth trust URL`/);
  assert.match(described("ECONNREFUSED"), /next: start the server with `berth up`/);
});
