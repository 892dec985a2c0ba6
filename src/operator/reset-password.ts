/** `berth reset-password`: lets the operator of the machine back in. */
import { hashPassword } from "../auth/passwords.ts";
import { readSecretKeys } from "../auth/secret-key.ts";
import type { Config } from "../config.ts";
import { notFound, PlatformError } from "../contract/errors.ts";
import { PASSWORD_LENGTH_MIN } from "../contract/password-length.ts";
import { UsageError } from "../lib/usage-error.ts";
import { withOwnStore } from "./own-store.ts";

export interface ResetCommand {
  config: Config;
  email: string;
  password: string;
}

export async function resetPassword({ config, email, password }: ResetCommand): Promise<string[]> {
  if (password.length < PASSWORD_LENGTH_MIN)
    throw new UsageError(`a password has at least ${PASSWORD_LENGTH_MIN} characters.`);
  if (readSecretKeys(config).length === 0)
    throw new PlatformError("not_found", `There is no platform in ${config.data}: it has no secret.key.`);
  return withOwnStore(config, "resetting a password", async (store) => {
    const user = await store.people.getUser(email);
    if (!user) throw notFound(`User '${email}'`);
    await store.people.setPassword(user.sub, await hashPassword(password));
    await store.oauth.endSessions(user.sub, null);
    await store.audit.record({
      actor: "",
      actorType: "operator",
      actorName: "operator",
      authMethod: "machine",
      keyId: null,
      action: "passwordReset",
      target: user.email,
      accountId: (await store.people.accountsOf(user.sub))[0]?.id ?? null,
      workspace: null,
      outcome: "ok",
      status: 200,
      sourceAddress: "machine",
      requestId: "",
    });
    return [`The password of ${user.email} is set. Sessions of before have ended; API keys stay.`];
  });
}
