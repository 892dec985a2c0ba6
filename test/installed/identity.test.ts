/** OAuth and people, as a stranger's installation serves them. */
import { machineTokens } from "../identity/machine-suite.ts";
import { peopleTokens } from "../identity/people-suite.ts";
import { registration } from "../identity/registration-suite.ts";
import { onInstallation } from "./suite.ts";

await onInstallation("people's tokens", peopleTokens);
await onInstallation("machine tokens", machineTokens);
await onInstallation("programs that register themselves", registration);
