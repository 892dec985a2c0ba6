/** Why a workload does not get a connection, as the egress proxy answers. */
export interface EgressRefusal {
  status: number;
  /** For programs, in the header Proxy-Error. */
  code: string;
  message: string;
  /** The place of the rule that refuses; absent where no rule of a tenant does. */
  rule?: string;
}

export const refusal = (status: number, code: string, message: string): EgressRefusal => ({ status, code, message });

export const refusedBy = (host: string, rule: string): EgressRefusal => ({
  ...refusal(403, "firewall_blocked", `${host} is refused by ${rule}.`),
  rule,
});

export const isRefusal = (value: object): value is EgressRefusal => "code" in value && "status" in value;
