/** A rule that cannot be understood, and the member of the specification that holds it. */
export class RuleProblem extends Error {
  readonly path: string;
  readonly rule: string;

  constructor(path: string, rule: string) {
    super(`${path}: ${rule}`);
    this.path = path;
    this.rule = rule;
  }
}
