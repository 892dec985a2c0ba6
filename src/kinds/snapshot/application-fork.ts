/**
 * Turns a sandbox into an application: its current files or a snapshot, and the program that listens on the port,
 * started again from those files. An existing application gets a new revision with a share of the traffic or all of it.
 */
import { z } from "zod";
import { authorizeScope } from "../../auth/authorize.ts";
import { invalidField, PlatformError } from "../../contract/errors.ts";
import * as fields from "../../contract/fields.ts";
import { linksOf } from "../../contract/references.ts";
import { ALL_PERCENT, choiceOf, sharedChoice } from "../../contract/revision-share.ts";
import { CONTROL, type ServingProcess } from "../../contract/sandbox-wire.ts";
import { extractSecrets, restoreSecrets } from "../../contract/secret-fields.ts";
import { need } from "../../node/capabilities/need.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import { applicationBehaviour } from "../application/behaviour.ts";
import { type Application, application, command, workingDir } from "../application/kind.ts";
import { findDriverImage } from "../image/resolve.ts";
import type { Call, Deps, Input } from "../port.ts";
import { isHere } from "../region.ts";
import { awake } from "../sandbox/awake.ts";
import { askInside } from "../sandbox/inside.ts";
import { type Sandbox, sandbox as sandboxKind } from "../sandbox/kind.ts";
import { startOf } from "../sandbox/start.ts";
import type { sandboxFork } from "./operations.ts";
import { settled } from "./settled.ts";

type ForkCall = Call<Record<string, unknown>, z.output<NonNullable<typeof sandboxFork.body>>>;

interface Origin {
  source: Sandbox;
  /** Name of the application. */
  name: string;
  /** Id of an existing snapshot, or the id under which the current files are saved. */
  snapshot: string;
}

const PORT_DEFAULT = 8080;
const ANSWER_MS = 10_000;
const ENV_VALUE_MAX = 128 * 1024;

export async function forkToApplication(origin: Origin, call: ForkCall, deps: Deps): Promise<void> {
  const { store, driver } = deps;
  const { source, name, snapshot } = origin;
  const scope = { workspace: source.workspace, kind: application.name, parent: "" };
  const found = await store.resources.get(scope, name);
  const current = found && ofKind(application, found);
  if (current && current.deletedAt !== null) throw leaving(name);
  const needed = current ? "applications:update" : "applications:create";
  authorizeScope({ id: call.operation.id, scope: needed }, call.caller);
  const input = await inputOf(origin, current, call, deps);
  const context = { call, deps, current, parents: [], reveal: new Set<string>(), state: {} };
  await applicationBehaviour.prepare?.(input, context);
  if (call.body.snapshotId === undefined) await (await need(driver, "snapshots")).take(source.uid, snapshot);
  input.spec.snapshot = snapshot;
  const secrets = extractSecrets(input, application.secrets);
  const made = await write(origin, input, secrets, current, call, deps);
  await settled(made, (now) => now === null || now.observedGeneration >= made.generation, deps);
}

const leaving = (name: string): PlatformError =>
  new PlatformError("conflict", `application '${name}' is being deleted.`);

async function write(
  { source, name }: Origin,
  input: Input<Application>,
  secrets: Record<string, string>,
  current: Application | null,
  call: ForkCall,
  { store }: Deps,
): Promise<Resource> {
  const actor = call.caller.displayName;
  const message = `Forked from sandbox '${source.name}' by ${actor}.`;
  const claims = applicationBehaviour.claims?.(input, call) ?? [];
  return store.write(async (tx) => {
    const made = current
      ? await store.resources.modify(tx, current.workspace, current.uid, (now) => ({
          spec: withTraffic(input.spec, now, call.body.traffic),
          ...{ secrets, actor, intent: true, revision: true, status: "DEPLOYING" },
          event: { type: "forked", message, revision: String(now.generation + 1) },
        }))
      : await insert();
    if (!made) throw leaving(name);
    await store.links.replace(tx, made, [...linksOf(input, application.references), ...claims]);
    return made;

    async function insert(): Promise<Resource> {
      const { resource } = await store.resources.insert(tx, {
        ...{ workspace: source.workspace, kind: application.name, parent: "", uid: call.uid(), name },
        ...{ metadata: {}, spec: input.spec, secrets, state: {}, status: "DEPLOYING" },
        ...{ events: [{ type: "created", message }], revision: true, actor, settled: false },
        node: source.node,
      });
      if (resource.uid === call.uid()) return resource;
      throw new PlatformError("already_exists", `application '${name}' was made in this moment. Try again.`);
    }
  });
}

/** Copies the members that sandboxes and applications share; other members of the application stay. */
async function inputOf(
  origin: Origin,
  current: Application | null,
  call: ForkCall,
  deps: Deps,
): Promise<Input<Application>> {
  const { source, name } = origin;
  const { body } = call;
  const spec = structuredClone(source.spec);
  restoreSecrets({ spec }, sandboxKind.secrets, deps.store.resources.secretsOf(source));
  const runtime = startOf({ spec });
  const port = body.port ?? runtime.ports?.[0]?.target ?? PORT_DEFAULT;
  if (body.prefix !== undefined && body.customDomain === undefined)
    throw invalidField("prefix", "is the part before a customDomain, which is missing");
  const { prefix: subdomain, customDomain: domain } = body;
  // A sandbox may carry a region alias that the operator has removed since.
  const region = isHere(spec.region, deps.settings) ? spec.region : current?.spec.region;
  const serving = await servingIn(source, port, runtime.image, deps);
  const own = Object.entries(serving.env).map(([key, value]) => ({ name: key, value, secret: true }));
  const replaced = new Set(own.map((env) => env.name));
  return {
    metadata: { ...current?.metadata, name },
    spec: {
      ...current?.spec,
      ...{ enabled: true, image: runtime.image, memory: body.memory ?? runtime.memory, port, region },
      envs: [...(runtime.envs ?? []).filter((env) => !replaced.has(env.name)), ...own],
      ...(serving.argv.length > 0 ? { command: serving.argv, workingDir: serving.workDir } : {}),
      ...(domain === undefined ? {} : { urls: [{ domain, ...(subdomain === undefined ? {} : { subdomain }) }] }),
    },
  };
}

/** The daemon inside the sandbox is not trusted, so its answer is validated. */
const servingShape = z.object({
  argv: command.min(1),
  workDir: workingDir,
  env: z.record(fields.env.shape.name, z.string().max(ENV_VALUE_MAX)).refine((env) => Object.keys(env).length < 256),
});

function readServing(text: string): ServingProcess {
  try {
    return servingShape.parse(JSON.parse(text));
  } catch (error) {
    throw new PlatformError("unprocessable", "The sandbox does not tell what listens there.", { cause: error });
  }
}

/** The program that listens on the port; without one, the image's own entry point. */
async function servingIn(source: Resource, port: number, image: string, deps: Deps): Promise<ServingProcess> {
  const end = deps.activity.begin(source.uid);
  try {
    const endpoint = await awake(source.workspace, source.uid, deps);
    const path = `${CONTROL.serving}${port}`;
    const { status, text } = await askInside(endpoint, { door: "control", path, answerMs: ANSWER_MS });
    if (status === 200) return readServing(text);
  } finally {
    end();
  }
  const found = await findDriverImage(image, source, deps);
  const { argv = [] } = (found === null ? null : await (await deps.driver.capability("images"))?.find(found)) ?? {};
  if (argv.length > 0) return { argv: [], workDir: "", env: {} };
  throw new PlatformError(
    "unprocessable",
    `Nothing listens on port ${port} in sandbox '${source.name}'. Start the server there, or name its port: the application runs the same program from the same files.`,
  );
}

/** With a traffic share below 100 %, the new revision becomes a canary beside the active one. */
function withTraffic(spec: Record<string, unknown>, now: Resource, traffic: number = ALL_PERCENT) {
  const { active: _active, ...choice } = choiceOf({ spec });
  return { ...spec, revision: sharedChoice(choice, now, traffic) };
}
