import type { Migration } from "./migration.ts";

/** Orders of certificates by workspace. A row outlives the domain and the certificate that it was for. */
export const certificateOrders: Migration = {
  id: 31,
  name: "certificate_orders",
  both: [
    "CREATE TABLE certificate_orders (id {text} PRIMARY KEY, workspace {text} NOT NULL, ordered_at BIGINT NOT NULL)",
    "CREATE INDEX certificate_orders_time ON certificate_orders (ordered_at)",
  ],
};
