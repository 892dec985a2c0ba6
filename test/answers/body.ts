/**
 * What tests read in the answers of the API, as one type for all of them: a member has the same type wherever it stands.
 * The compiler then knows what can be done with a member; whether it is there is what the test finds out. A member that is
 * not named here is `unknown`, which is enough for an assertion. An answer of another shape is a type of its own:
 * `call<Shape>("GET", path)`.
 */

/** Lists of older versions are bare arrays, so that a body may be one, too. */
type ListMember =
  | "map"
  | "filter"
  | "some"
  | "every"
  | "flatMap"
  | "findLast"
  | "toReversed"
  | "slice"
  | "length"
  | typeof Symbol.iterator;

interface Entries extends Pick<Body[], ListMember> {
  [index: number]: Body;
  0: Body;
  1: Body;
  2: Body;
  at(index: number): Body;
  find(isWanted: (entry: Body) => unknown): Body;
}

/** A word in one answer and an object in another. */
type Word = string & Body;
/** A number in one answer and an object in another. */
type Count = number & Body;

/** `GET /observability/logs`, by the name of the workload. */
export type LogPages = Record<string, { logs: { message: string; timestamp: string }[]; totalCount: number }>;

export interface Body extends Entries {
  [member: string]: unknown;

  access: Body;
  actor: Body;
  additionalInfos: Body;
  application: Body;
  body: Body;
  brokenAt: Body;
  build: Body;
  changed: Body;
  conditions: Body;
  configuration: Body;
  continents: Body;
  counts: Body;
  data: Body;
  details: Body;
  dockerConfig: Body;
  entries: Body;
  envs: Body;
  errors: Body;
  events: Body;
  expirationPolicies: Body;
  extraArgs: Body;
  failures: Body;
  fallbacks: Body;
  features: Body;
  files: Body;
  firewall: Body;
  flavors: Body;
  grades: Body;
  images: Body;
  info: Body;
  input: Body;
  invitedBy: Body;
  ipv4Cidrs: Body;
  kept: Body;
  key: Body;
  kinds: Body;
  lifecycle: Body;
  locations: Body;
  messages: Body;
  meta: Body;
  metadata: Body;
  missing: Body;
  models: Body;
  mounts: Body;
  network: Body;
  permissions: Body;
  price: Body;
  proxy: Body;
  quotas: Body;
  regions: Body;
  resourceCounts: Body;
  resources: Body;
  result: Body;
  revision: Body;
  revisions: Body;
  roles: Body;
  routing: Body;
  rules: Body;
  runtime: Body;
  scopes: Body;
  secret: Body;
  secrets: Body;
  spec: Body;
  started: Body;
  state: Body;
  stats: Body;
  summary: Body;
  tags: Body;
  timeseries: Body;
  triggers: Body;
  usedBy: Body;
  variables: Body;
  versions: Body;
  volumes: Body;
  workspaces: Body;

  REFRESH_TOKEN: string;
  access_token: string;
  accountId: string;
  action: string;
  active: string;
  apiKey: string;
  attachedTo: string;
  billingDimension: string;
  callbackSecret: string;
  canary: string;
  client: string;
  client_id: string;
  client_secret: string;
  cnameRecords: string;
  code: string;
  completedAt: string;
  content: string;
  createdAt: string;
  createdBy: string;
  date: string;
  description: string;
  digest: string;
  displayName: string;
  domainType: string;
  email: string;
  endpoint: string;
  executionId: string;
  expires: string;
  expiresAt: string;
  gatewayName: string;
  icon: string;
  id: string;
  image: string;
  imageSource: string;
  integration: string;
  invitationId: string;
  ipFamily: string;
  issuer: string;
  kind: string;
  lastVerifiedAt: string;
  message: string;
  model: string;
  mountPath: string;
  name: string;
  nextCursor: string;
  node: string;
  outcome: string;
  prefix: string;
  publicIp: string;
  reason: string;
  region: string;
  resource: string;
  resourceName: string;
  resourceType: string;
  role: string;
  s3Url: string;
  sha: string;
  snapshotId: string;
  sourceAddress: string;
  startedAt: string;
  status: string;
  statusReason: string;
  stderr: string;
  stdout: string;
  sub: string;
  sub_type: string;
  target: string;
  terminatedAt: string;
  timestamp: string;
  title: string;
  token: string;
  ttl: string;
  type: string;
  uid: string;
  updatedAt: string;
  url: string;
  value: string;
  verificationError: string;
  version: string;
  volumeName: string;
  vpc: string;
  vpcName: string;

  canaryPercent: number;
  defaultSize: number;
  drives: number;
  estimatedRequests: number;
  expiresIn: number;
  expires_in: number;
  inputTokens: number;
  memory: number;
  messageCount: number;
  outputTokens: number;
  port: number;
  requests: number;
  running: number;
  sandbox: number;
  sandboxes: number;
  serviceaccounts: number;
  size: number;
  statusCode: number;
  storedMb: number;
  success: number;
  total: number;
  traffic: number;
  usedBytes: number;

  accepted: boolean;
  drained: boolean;
  enabled: boolean;
  expired: boolean;
  hasMore: boolean;
  public: boolean;
  sized: boolean;

  error: Word;
  failure: Word;
  isolation: Word;
  k: Word;
  logs: Word;
  tasks: Word;
  template: Word;
  workspace: Word;

  cost: Count;
  deleted: Count;
  lines: Count;
  usage: Count;

  env: Record<string, string>;
  labels: Record<string, string>;
  refused: Record<string, string>;
  txtRecords: Record<string, string>;

  limits: string[];
  supported_images: string[];

  end: number[];
  start: number[];
}
