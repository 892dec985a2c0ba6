/** One run after another of the same program: a new one replaces the last, and nothing that fails ends the series. */
import type { Context } from "../command.ts";
import type { Project } from "../project.ts";
import { localEnv, type Place } from "./local-env.ts";
import { type LocalProgram, startLocally } from "./local-program.ts";

export interface RunsOptions {
  project: Project;
  /** The shell line that starts the program. */
  line: string;
  place: Place;
  context: Pick<Context, "env" | "note" | "print">;
}

export class LocalRuns {
  readonly #options: RunsOptions;
  #program: LocalProgram | null = null;
  #bearer = "";
  #turn: Promise<void> = Promise.resolve();

  constructor(options: RunsOptions) {
    this.#options = options;
  }

  /** Fails when there are no credentials. */
  async start(): Promise<void> {
    this.#bearer = await this.#options.place.connection.bearer();
    await this.#next(() => this.#replace());
  }

  /** A program that ended by itself is started again, too. Without new credentials it runs on with the last ones. */
  restart(why: string): Promise<void> {
    const { place, context } = this.#options;
    return this.#next(async () => {
      context.note(why);
      this.#bearer = await place.connection.bearer().catch((error: unknown) => {
        context.note(`the credentials were not renewed, the last ones are used: ${messageOf(error)}`);
        return this.#bearer;
      });
      await this.#replace();
    });
  }

  /** Restarts when there are new credentials; when they cannot be had, the next look tries again. */
  async renew(): Promise<void> {
    const now = await this.#options.place.connection.bearer().catch(() => this.#bearer);
    if (now !== this.#bearer) await this.restart("the credentials were renewed: restarting");
  }

  stop(): Promise<void> {
    return this.#next(() => this.#end());
  }

  #next(step: () => Promise<void>): Promise<void> {
    const { context } = this.#options;
    this.#turn = this.#turn.then(step).catch((error: unknown) => context.note(`it did not start: ${messageOf(error)}`));
    return this.#turn;
  }

  async #replace(): Promise<void> {
    const { project, line, place, context } = this.#options;
    await this.#end();
    const env = localEnv(project, place, this.#bearer, context.env);
    const started = startLocally({ line, folder: project.dir, env, port: place.port });
    this.#program = started;
    const isCurrent = (): boolean => this.#program === started;
    void started.ended.then((end) => {
      if (isCurrent()) context.note(`${project.name} ${end}; it starts again when a file changes`);
    });
    // Not waited for: a program that never listens can be changed, too.
    void started.ready.then((how) => {
      if (how === "ready" && isCurrent()) context.print(`${project.name} answers at http://127.0.0.1:${place.port}`);
    });
  }

  /** Whoever ends a program does not tell that it ended. */
  async #end(): Promise<void> {
    const last = this.#program;
    this.#program = null;
    await last?.stop();
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
