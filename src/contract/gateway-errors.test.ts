import assert from "node:assert/strict";
import { test } from "node:test";
import { PlatformError } from "./errors.ts";
import { asGatewayError, GATEWAY_ERRORS, GatewayError } from "./gateway-errors.ts";

test("the codes clients already know keep their status and retry flag", () => {
  const known = {
    ROUTE_NOT_FOUND: [404, false],
    WORKLOAD_NOT_FOUND: [404, false],
    WORKSPACE_NOT_FOUND: [404, false],
    WORKLOAD_UNAVAILABLE: [404, true],
    AUTHENTICATION_REQUIRED: [401, false],
    AUTHENTICATION_FAILED: [401, false],
    FORBIDDEN: [403, false],
    BAD_REQUEST: [400, false],
    USAGE_LIMIT_EXCEEDED: [402, false],
    REQUEST_ENTITY_TOO_LARGE: [413, false],
  } as const;
  for (const [code, [status, retryable]] of Object.entries(known)) {
    const row = GATEWAY_ERRORS[code as keyof typeof known];
    assert.deepEqual([row.status, row.retryable], [status, retryable], code);
  }
});

test("every row is complete and every status is an error", () => {
  for (const [code, row] of Object.entries(GATEWAY_ERRORS)) {
    assert.ok(row.status >= 400 && row.status < 600, code);
    for (const text of [row.message, row.action, row.doNot]) assert.match(text, /^[A-Z].*\.$/, code);
  }
});

test("the body has exactly the members clients read", () => {
  const body = new GatewayError("WORKLOAD_UNAVAILABLE", "Nothing runs.").toWire(0, "http://h/docs/gateway");
  assert.deepEqual(body, {
    error: {
      action: GATEWAY_ERRORS.WORKLOAD_UNAVAILABLE.action,
      code: "WORKLOAD_UNAVAILABLE",
      do_not: GATEWAY_ERRORS.WORKLOAD_UNAVAILABLE.doNot,
      docs_url: "http://h/docs/gateway#workload_unavailable",
      message: "Nothing runs.",
      origin: "platform",
      retryable: true,
      status: 404,
      timestamp: "1970-01-01T00:00:00.000Z",
    },
  });
});

test("a policy decides the status of its violation", () => {
  assert.equal(new GatewayError("POLICY_VIOLATION", undefined, { status: 451 }).status, 451);
});

test("platform errors are translated, unknown ones reveal nothing", () => {
  const forbidden = asGatewayError(new PlatformError("forbidden", "No.", { headers: { "retry-after": "1" } }));
  assert.equal(forbidden.code, "FORBIDDEN");
  assert.equal(forbidden.message, "No.");
  assert.deepEqual(forbidden.headers, { "retry-after": "1" });
  const secret = asGatewayError(new Error("password is hunter2"));
  assert.equal(secret.code, "INTERNAL_ERROR");
  assert.doesNotMatch(JSON.stringify(secret.toWire(0, "")), /hunter2/);
  const own = new GatewayError("BAD_REQUEST");
  assert.equal(asGatewayError(own), own);
});
