/** The prices in force, and what the last days would have cost at others. */
import { useState } from "preact/hooks";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { type Price, type Repriced, reprice, usePrices } from "../../api/usage.ts";
import { moneyOf, timeOf } from "../../lib/format.ts";
import { queryOf, setQuery } from "../../lib/location.ts";
import { labelOf } from "../../lib/titles.ts";
import { Table } from "../../table/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/facts.tsx";
import { Choice } from "../../ui/field.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { SPANS } from "./spans.ts";
import "./usage.css";

export function Prices({ workspace, account }: { workspace: string; account: string }) {
  const { data, error } = usePrices(workspace, account);
  const [drafts, setDrafts] = useState<Readonly<Record<string, string>>>({});
  const [answer, setAnswer] = useState<Repriced | null>(null);
  const refusal = useRefusal(workspace, "accountReprice");
  const span = queryOf("span") || "30 days";
  const changed = Object.entries(drafts).map(([dimension, usd]) => ({ dimension, usd }));
  const compare = useAction(async () => setAnswer(await reprice(workspace, account, SPANS[span] ?? 30, changed)));
  if (error) return <Failure error={error} />;
  if (data === undefined) return <Loading />;
  const keep = (dimension: string, usd: string, known: string): void => {
    const { [dimension]: _old, ...others } = drafts;
    setDrafts(usd === "" || usd === known ? others : { ...others, [dimension]: usd });
  };
  return (
    <>
      <div class="filters usage-head">
        <Choice
          label="What if, over"
          value={span}
          choices={Object.keys(SPANS)}
          onInput={(next) => setQuery({ span: next })}
        />
        <Button
          kind="main"
          busy={compare.busy}
          unable={refusal ?? (changed.length === 0 ? "Write another price below" : null)}
          onClick={() => void compare.run(null)}
        >
          Compare
        </Button>
        <Button unable={changed.length === 0 ? "Nothing has changed" : null} onClick={() => setDrafts({})}>
          Prices in force
        </Button>
      </div>
      {compare.error ? <Failure error={compare.error} /> : null}
      {answer === null ? null : <WhatIf answer={answer} span={span} />}
      <Table
        label="Prices"
        rows={data}
        keyOf={({ dimension, from = "" }) => `${dimension} ${from}`}
        columns={[
          { title: "Dimension", look: "name", cell: ({ dimension }) => labelOf(dimension) },
          { title: "Unit", look: "wide", cell: ({ unit }) => labelOf(unit) },
          { title: "USD for one", look: "mono wide", cell: ({ usd }) => usd },
          { title: "Since", look: "wide", cell: ({ from = "" }) => (from === "" ? "ever" : timeOf(from)) },
          {
            title: "What if",
            cell: (price) => <Other price={price} value={drafts[price.dimension] ?? ""} onInput={keep} />,
          },
        ]}
      />
    </>
  );
}

interface OtherProps {
  price: Price;
  value: string;
  onInput(dimension: string, usd: string, known: string): void;
}

const Other = ({ price: { dimension, usd }, value, onInput }: OtherProps) => (
  <input
    class="input price"
    inputMode="decimal"
    aria-label={`Another price of ${labelOf(dimension)}`}
    placeholder={usd}
    value={value}
    onInput={(event) => onInput(dimension, event.currentTarget.value.trim(), usd)}
  />
);

function WhatIf({ answer: { summary, data }, span }: { answer: Repriced; span: string }) {
  const difference = summary.repricedCost - summary.totalCost;
  return (
    <Card title={`The full hours of the last ${span}`}>
      <div class="stack">
        <p>
          {moneyOf(summary.totalCost)} at the prices in force, <strong>{moneyOf(summary.repricedCost)}</strong> at
          yours:{" "}
          <span class={difference > 0 ? "was" : "becomes"}>
            {difference > 0 ? "+" : "−"}
            {moneyOf(Math.abs(difference))}
          </span>
        </p>
        {data.length === 0 ? (
          <p class="quiet">Nothing was used in full hours.</p>
        ) : (
          <Table
            label="What if"
            rows={data}
            keyOf={({ billingDimension }) => billingDimension}
            columns={[
              { title: "Dimension", look: "name", cell: ({ billingDimension }) => labelOf(billingDimension) },
              { title: "Usage", look: "wide", cell: ({ usage }) => usage.toLocaleString("en") },
              { title: "In force", cell: ({ cost }) => moneyOf(cost) },
              { title: "What if", cell: ({ repricedCost }) => moneyOf(repricedCost) },
            ]}
          />
        )}
      </div>
    </Card>
  );
}
