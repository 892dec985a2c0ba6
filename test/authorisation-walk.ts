/**
 * The walk: every operation, called by everybody. What each may do is worked out here from what the operation declares,
 * and compared with what the platform does; a new operation cannot escape it.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Operation, Role } from "../src/contract/operation.ts";
import { OPERATIONS } from "../src/kinds/index.ts";
import type { TestPlatform } from "./platform.ts";

export interface Principal {
  /** Keys and tokens that all stand for the same somebody. */
  credentials: string[];
  /** In the workspace of the walk, and in its account. */
  inWorkspace: Role | null;
  inAccount: Role | null;
  /** null = all. */
  scopes: readonly string[] | null;
  isPerson: boolean;
}

export interface World {
  call: TestPlatform["call"];
  /** Nothing is in it that the walk could change. */
  workspace: string;
  accountId: string;
  principals: Record<string, Principal>;
  /** What opens nothing at all. */
  worthless: Record<string, string | null>;
}

/** `world` is asked once the tests run. */
export function walkOperations(world: () => World): void {
  /** A path that names nothing that exists, in our own workspace and account. */
  const pathOf = (operation: Operation): string =>
    operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
      name === operation.workspaceParam
        ? world().workspace
        : name === "accountId"
          ? world().accountId
          : "no-such-thing",
    );

  /** No body is a list, so whoever is let in changes nothing. */
  const send = async (operation: Operation, key: string | null): Promise<number> =>
    (
      await world().call(operation.method, pathOf(operation), {
        key,
        workspace: world().workspace,
        ...(operation.body ? { body: [] } : {}),
      })
    ).status;

  describe("every operation", () => {
    for (const operation of OPERATIONS.filter(({ tenancy }) => tenancy !== "public")) {
      test(`${operation.id} lets in who may, and nobody else`, async () => {
        const unknown = Object.entries(world().worthless).map(async ([what, key]) =>
          assert.equal(await send(operation, key), 401, `${operation.id} with ${what}`),
        );
        const known = Object.entries(world().principals).flatMap(([what, who]) => {
          const outcome = expected(operation, who);
          if (outcome === "in" && !(isHarmless(operation) && isForAll(operation, who))) return [];
          return who.credentials.map(async (key) => {
            const status = await send(operation, key);
            if (outcome === "in")
              assert.ok(status !== 401 && status !== 403, `${operation.id} refuses ${what}: ${status}`);
            else assert.equal(status, outcome, `${operation.id} called by ${what}`);
          });
        });
        await Promise.all([...unknown, ...known]);
      });
    }
  });

  test("a caller is told beforehand which operations are refused", async () => {
    for (const [what, who] of Object.entries(world().principals))
      for (const key of who.credentials) {
        const { status, body } = await world().call("GET", "/users/me", { key, workspace: world().workspace });
        assert.equal(status, 200, what);
        assert.equal(body.workspace, who.inWorkspace && world().workspace, what);
        if (!who.inWorkspace) continue;
        const walked = OPERATIONS.filter((one) => one.tenancy !== "public" && isForAll(one, who));
        const refused = walked.filter((one) => expected(one, who) !== "in");
        const told = walked.filter(({ id }) => id in body.refused);
        assert.deepEqual(
          told.map(({ id }) => id),
          refused.map(({ id }) => id),
          what,
        );
        for (const { id, tenancy, adminUses = [] } of walked.filter((one) => !refused.includes(one))) {
          const isAdmin: boolean = (tenancy === "account" ? who.inAccount : who.inWorkspace) === "admin";
          for (const { query } of adminUses)
            assert.equal(`${id}?${query}` in body.refused, !isAdmin, `${id} to ${what}`);
        }
      }
  });

  for (const operation of OPERATIONS.filter(({ adminUses = [] }) => adminUses.length > 0))
    test(`${operation.id} keeps for admins what is theirs`, async () => {
      for (const { query, applies } of operation.adminUses ?? []) {
        assert.ok(applies(Object.fromEntries(new URLSearchParams(query))), query);
        for (const [what, who] of Object.entries(world().principals)) {
          const isAdmin = (operation.tenancy === "account" ? who.inAccount : who.inWorkspace) === "admin";
          if (expected(operation, who) !== "in" || !isForAll(operation, who)) continue;
          for (const key of who.credentials) {
            const path = `${pathOf(operation)}?${query}`;
            const { status } = await world().call("GET", path, { key, workspace: world().workspace });
            assert.equal(status === 403, !isAdmin, `${path} by ${what}: ${status}`);
          }
        }
      }
    });
}

/** What the declaration says: refused, not even told that it exists, or let in. */
function expected({ tenancy, scope, role, workspaceParam }: Operation, who: Principal): 403 | 404 | "in" {
  const { scopes } = who;
  if (scope !== null && scopes && !scopes.includes(scope) && !scopes.includes("admin")) return 403;
  if (tenancy === "account") return who.inAccount && (role === "member" || who.inAccount === "admin") ? "in" : 403;
  if (tenancy !== "workspace") return "in";
  if (!who.inWorkspace) return workspaceParam ? 404 : 403;
  return role === "member" || who.inWorkspace === "admin" ? "in" : 403;
}

/** What has no body to be wrong would really happen. */
const isHarmless = ({ method, body }: Operation): boolean => method === "GET" || body !== undefined;
/** Some things are for people alone; their own tests say so. */
const isForAll = ({ tenancy }: Operation, { isPerson }: Principal): boolean => isPerson || tenancy === "workspace";
