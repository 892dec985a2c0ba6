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
