/** The server-side behaviour of every kind, in the order of the declarations in index.ts. */

import { accountHandlers } from "./account/handlers.ts";
import { agentBehaviour } from "./agent/behaviour.ts";
import { apiKeyHandlers } from "./api-key/handlers.ts";
import { applicationBehaviour } from "./application/behaviour.ts";
import { auditHandlers } from "./audit/handlers.ts";
import { certificateHandlers } from "./certificate/handlers.ts";
import { changelogHandlers } from "./changelog/handlers.ts";
import { configurationHandlers } from "./configuration/handlers.ts";
import { customDomainBehaviour } from "./custom-domain/behaviour.ts";
import { customDomainHandlers } from "./custom-domain/handlers.ts";
import { driveBehaviour } from "./drive/behaviour.ts";
import { egressGatewayBehaviour } from "./egress-gateway/behaviour.ts";
import { egressIpBehaviour } from "./egress-ip/behaviour.ts";
import { featureHandlers } from "./feature/handlers.ts";
import { functionBehaviour } from "./function/behaviour.ts";
import { functionHandlers } from "./function/handlers.ts";
import { hubHandlers } from "./hub/handlers.ts";
import { imageUploads } from "./image/build.ts";
import { imageHandlers } from "./image/handlers.ts";
import { IMAGE } from "./image/images.ts";
import { imageShareHandlers } from "./image/share-handlers.ts";
import { integrationHandlers } from "./integration/handlers.ts";
import { integrationConnectionBehaviour } from "./integration-connection/behaviour.ts";
import { connectionHandlers } from "./integration-connection/handlers.ts";
import { invitationHandlers } from "./invitation/handlers.ts";
import { jobBehaviour } from "./job/behaviour.ts";
import { executionHandlers } from "./job/handlers.ts";
import { logHandlers } from "./log/handlers.ts";
import { metricHandlers } from "./metric/handlers.ts";
import { modelBehaviour } from "./model/behaviour.ts";
import { modelHandlers } from "./model/handlers.ts";
import { nodeHandlers } from "./node/handlers.ts";
import { overviewHandlers } from "./overview/handlers.ts";
import { policyBehaviour } from "./policy/behaviour.ts";
import type { Behaviour, Implementation, Uploads } from "./port.ts";
import { previewBehaviour } from "./preview/behaviour.ts";
import { previewTokenBehaviour } from "./preview-token/behaviour.ts";
import { quotaHandlers } from "./quota/handlers.ts";
import { referenceHandlers } from "./reference/handlers.ts";
import { sandboxBehaviour } from "./sandbox/behaviour.ts";
import { sandboxHandlers } from "./sandbox/handlers.ts";
import { scheduleBehaviour } from "./schedule/behaviour.ts";
import { scheduleExecutionBehaviour } from "./schedule-execution/behaviour.ts";
import { searchHandlers } from "./search/handlers.ts";
import { serviceAccountHandlers } from "./service-account/handlers.ts";
import { snapshotBehaviour } from "./snapshot/behaviour.ts";
import { forkHandlers } from "./snapshot/fork.ts";
import { templateHandlers } from "./template/handlers.ts";
import { threadHandlers } from "./thread/handlers.ts";
import { userHandlers } from "./user/handlers.ts";
import { selfHandlers } from "./user/self-handlers.ts";
import { volumeBehaviour } from "./volume/behaviour.ts";
import { volumeHandlers } from "./volume/handlers.ts";
import { volumeSnapshotBehaviour } from "./volume-snapshot/behaviour.ts";
import { volumeTemplateBehaviour } from "./volume-template/behaviour.ts";
import { vpcBehaviour } from "./vpc/behaviour.ts";
import { watchHandlers } from "./watch/handlers.ts";
import { workspaceHandlers } from "./workspace/handlers.ts";

export const BEHAVIOURS: readonly Behaviour[] = [
  agentBehaviour,
  applicationBehaviour,
  customDomainBehaviour,
  driveBehaviour,
  egressGatewayBehaviour,
  egressIpBehaviour,
  functionBehaviour,
  integrationConnectionBehaviour,
  jobBehaviour,
  modelBehaviour,
  policyBehaviour,
  previewBehaviour,
  previewTokenBehaviour,
  sandboxBehaviour,
  scheduleBehaviour,
  scheduleExecutionBehaviour,
  snapshotBehaviour,
  volumeBehaviour,
  volumeSnapshotBehaviour,
  volumeTemplateBehaviour,
  vpcBehaviour,
];

/** Handlers of operations other than create, read, update, delete and list. */
export const HANDLERS: readonly Implementation[] = [
  ...accountHandlers,
  ...apiKeyHandlers,
  ...auditHandlers,
  ...changelogHandlers,
  ...configurationHandlers,
  ...customDomainHandlers,
  ...featureHandlers,
  ...functionHandlers,
  ...hubHandlers,
  ...forkHandlers,
  ...sandboxHandlers,
  ...imageHandlers,
  ...imageShareHandlers,
  ...connectionHandlers,
  ...integrationHandlers,
  ...invitationHandlers,
  ...executionHandlers,
  ...modelHandlers,
  ...logHandlers,
  ...certificateHandlers,
  ...nodeHandlers,
  ...overviewHandlers,
  ...quotaHandlers,
  ...metricHandlers,
  ...referenceHandlers,
  ...searchHandlers,
  ...serviceAccountHandlers,
  ...templateHandlers,
  ...threadHandlers,
  ...selfHandlers,
  ...userHandlers,
  ...volumeHandlers,
  ...watchHandlers,
  ...workspaceHandlers,
];

/** How archives for a kind are taken; images have operations of their own and no behaviour. */
export const uploadsOf = (kind: string): Uploads | undefined =>
  kind === IMAGE ? imageUploads : BEHAVIOURS.find((each) => each.kind.name === kind)?.uploads;
