/** The pipeline for calls from inside the server: the same rights, audit and log lines as for requests of clients. */
import type { DirectCall } from "../contract/direct-call.ts";
import type { Implementation } from "../kinds/port.ts";
import { clientAddress, type Proxies } from "../lib/network/proxies.ts";
import { API_PREFIX } from "./operation-routes.ts";
import { answer, type PipelineDeps } from "./pipeline.ts";
import type { RequestLog } from "./request-log.ts";

export interface DirectCallDeps extends PipelineDeps {
  implementations: readonly Implementation[];
  requestLog: RequestLog;
  proxies: Proxies;
}

export function createDirectCall(deps: DirectCallDeps): DirectCall {
  const byId = new Map(deps.implementations.map((one) => [one.operation.id, one]));
  return async (id, { params = {}, query = {}, body, headers, requestId, peer, workload }) => {
    const implementation = byId.get(id);
    if (!implementation) throw new Error(`there is no operation '${id}'`);
    const { operation } = implementation;
    const started = performance.now();
    const sourceAddress = clientAddress(peer, headers["x-forwarded-for"], deps.proxies, workload);
    const request = { headers, params, query, body, stream: null, requestId, sourceAddress, notes: {} };
    const told = (status: number): void => {
      const ms = performance.now() - started;
      deps.requestLog.answered({ requestId, operation: operation.id, status, ms, ip: sourceAddress });
    };
    try {
      const result = await answer(implementation, request, deps);
      told(result.status);
      return {
        ...{ status: result.status, headers: result.headers },
        body: result.body === null ? null : JSON.parse(result.body),
      };
    } catch (error) {
      const route = `${API_PREFIX}${operation.path}`;
      const refusal = deps.requestLog.refusal(error, { requestId, method: operation.method, route });
      told(refusal.status);
      return { status: refusal.status, body: refusal.body, headers: {} };
    }
  };
}
