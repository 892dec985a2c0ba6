/** Every kind and every operation: the list that routes, openapi.json, the client, the CLI and the tests are derived from. */
import type { Kind } from "../contract/kind.ts";
import type { Operation } from "../contract/operation.ts";
import { accountOperations } from "./account/operations.ts";
import { agent } from "./agent/kind.ts";
import { apiKeyOperations } from "./api-key/operations.ts";
import { application } from "./application/kind.ts";
import { auditOperations } from "./audit/operations.ts";
import { certificateOperations } from "./certificate/operations.ts";
import { changelogOperations } from "./changelog/operations.ts";
import { configurationOperations } from "./configuration/operations.ts";
import { customDomain } from "./custom-domain/kind.ts";
import { customDomainOperations } from "./custom-domain/operations.ts";
import { drive } from "./drive/kind.ts";
import { driveOperations } from "./drive/operations.ts";
import { egressGateway, egressGatewayOperations } from "./egress-gateway/kind.ts";
import { egressIp, egressIpOperations } from "./egress-ip/kind.ts";
import { featureOperations } from "./feature/operations.ts";
import { functionKind } from "./function/kind.ts";
import { functionOperations } from "./function/operations.ts";
import { hubOperations } from "./hub/operations.ts";
import { imageOperations } from "./image/operations.ts";
import { imageShareOperations } from "./image/share-operations.ts";
import { integrationGet } from "./integration/operations.ts";
import { integrationConnection } from "./integration-connection/kind.ts";
import { connectionOperations } from "./integration-connection/operations.ts";
import { invitationOperations } from "./invitation/operations.ts";
import { job } from "./job/kind.ts";
import { executionOperations } from "./job/operations.ts";
import { logOperations } from "./log/operations.ts";
import { metricOperations } from "./metric/operations.ts";
import { model } from "./model/kind.ts";
import { modelOperations } from "./model/operations.ts";
import { nodeOperations } from "./node/operations.ts";
import { overviewOperations } from "./overview/operations.ts";
import { policy } from "./policy/kind.ts";
import { policyUsages } from "./policy/operations.ts";
import { preview } from "./preview/kind.ts";
import { previewToken } from "./preview-token/kind.ts";
import { previewTokenDelete } from "./preview-token/operations.ts";
import { quotaOperations } from "./quota/operations.ts";
import { referenceOperations } from "./reference/operations.ts";
import { sandbox } from "./sandbox/kind.ts";
import { sandboxOperations } from "./sandbox/operations.ts";
import { schedule } from "./schedule/kind.ts";
import { scheduleExecution } from "./schedule-execution/kind.ts";
import { searchOperations } from "./search/operations.ts";
import { serviceAccountOperations } from "./service-account/operations.ts";
import { snapshot } from "./snapshot/kind.ts";
import { snapshotOperations } from "./snapshot/operations.ts";
import { templateOperations } from "./template/operations.ts";
import { threadOperations } from "./thread/operations.ts";
import { userOperations } from "./user/operations.ts";
import { selfOperations } from "./user/self-operations.ts";
import { volume } from "./volume/kind.ts";
import { volumeOperations } from "./volume/operations.ts";
import { volumeSnapshot } from "./volume-snapshot/kind.ts";
import { volumeSnapshotDelete } from "./volume-snapshot/operations.ts";
import { volumeTemplate } from "./volume-template/kind.ts";
import { volumeTemplateVersionDelete } from "./volume-template/operations.ts";
import { vpc } from "./vpc/kind.ts";
import { watchOperations } from "./watch/operations.ts";
import { workspaceOperations } from "./workspace/operations.ts";

export const KINDS: readonly Kind[] = [
  agent,
  application,
  customDomain,
  drive,
  egressGateway,
  egressIp,
  functionKind,
  integrationConnection,
  job,
  model,
  policy,
  preview,
  previewToken,
  sandbox,
  schedule,
  scheduleExecution,
  snapshot,
  volume,
  volumeSnapshot,
  volumeTemplate,
  vpc,
];

const EXTRA_OPERATIONS: readonly Operation[] = [
  ...accountOperations,
  ...apiKeyOperations,
  ...auditOperations,
  ...changelogOperations,
  ...configurationOperations,
  ...customDomainOperations,
  ...certificateOperations,
  ...driveOperations,
  ...egressGatewayOperations,
  ...egressIpOperations,
  ...featureOperations,
  ...functionOperations,
  ...hubOperations,
  ...imageOperations,
  ...imageShareOperations,
  integrationGet,
  ...connectionOperations,
  ...invitationOperations,
  ...executionOperations,
  ...modelOperations,
  ...logOperations,
  ...metricOperations,
  ...nodeOperations,
  ...overviewOperations,
  policyUsages,
  previewTokenDelete,
  ...quotaOperations,
  ...referenceOperations,
  ...sandboxOperations,
  ...searchOperations,
  ...serviceAccountOperations,
  ...snapshotOperations,
  ...templateOperations,
  ...threadOperations,
  ...selfOperations,
  ...userOperations,
  ...volumeOperations,
  volumeSnapshotDelete,
  volumeTemplateVersionDelete,
  ...watchOperations,
  ...workspaceOperations,
];

export const OPERATIONS: readonly Operation[] = [...KINDS.flatMap((kind) => kind.operations), ...EXTRA_OPERATIONS];

/** The kind of this name; throws when there is none. */
export function kindNamed(name: string): Kind {
  const kind = KINDS.find((candidate) => candidate.name === name);
  if (!kind) throw new Error(`there is no kind '${name}'`);
  return kind;
}
