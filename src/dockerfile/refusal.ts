/** Why a Dockerfile is not built. The message names the line and the word. */
export class DockerfileRefused extends Error {
  readonly line: number;

  constructor(line: number, reason: string) {
    super(`Dockerfile line ${line}: ${reason}`);
    this.line = line;
  }
}

/** Words of the Dockerfile in messages are untrusted input: they are cut. */
export const shown = (word: string): string => `'${word.replace(/\s+/g, " ").slice(0, 80)}'`;
