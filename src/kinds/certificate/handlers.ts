import { presentCertificate } from "../custom-domain/certificates.ts";
import { askedRevocation, revokeCertificates } from "../custom-domain/revocation.ts";
import { type Implementation, implement, type Platform } from "../port.ts";
import { certificateList, certificateRevoke } from "./operations.ts";

export const certificateHandlers: readonly Implementation[] = [
  implement(certificateList, (_call, deps) => ownCertificates(deps)),

  implement(certificateRevoke, async (call, deps) => {
    await revokeCertificates(null, askedRevocation(call), deps);
    return ownCertificates(deps);
  }),
];

/** Records without a domain are the platform's own. */
const ownCertificates = async ({ store }: Platform) => (await store.certificates.list("")).map(presentCertificate);
