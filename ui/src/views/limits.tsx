import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useResource } from "../api/resource";
import type { Breaker, Limit, SwitchedOff } from "../api/types/limits";
import { Banner } from "../components/Banner";
import { Button, reasonOff } from "../components/Button";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { formatCount } from "../format/numbers";
import { useRefreshOn, useTopics } from "../live/hooks";
import { Link } from "../router/Link";
import type { ViewProps } from "../router/routes";
import { useActions, useTitle } from "../state/page";
import { plainText } from "../text/split";
import { Text } from "../text/Text";
import { CloseBreakerDialog, LimitDialog, OpenBreakerDialog, RemoveLimitDialog, SwitchOffDialog, SwitchOnDialog } from "./limits/dialogs";
import { splitOf } from "./limits/of";
import { BreakerTable, ConcurrencyTable, RateTable, SwitchTable } from "./limits/tables";
import "../styles/views/limits.css";

type Asked =
  | { what: "limit"; limit: Limit | null }
  | { what: "remove"; limit: Limit }
  | { what: "open"; name: string }
  | { what: "close"; breaker: Breaker }
  | { what: "off" }
  | { what: "on"; off: SwitchedOff };

const EVERY = { every: 5000 };

export default function LimitsView({ params }: ViewProps<"name">) {
  const name: string | undefined = params.name;
  const limits = useResource<Limit[]>(() => "limits", EVERY);
  const breakers = useResource<Breaker[]>(() => "breakers", EVERY);
  const switches = useResource<SwitchedOff[]>(() => "switches", EVERY);
  const [asked, setAsked] = useState<Asked | null>(null);
  const refresh = () => {
    for (const one of [limits, breakers, switches]) void one.refresh();
  };
  useTopics("limit", "breaker", "switch");
  useRefreshOn((event) => ["limit", "breaker", "switch"].includes(event.kind.split(".")[0] ?? ""), refresh, 500);
  useTitle(name ? `Breaker ${plainText(name)}` : "Limits and breakers", name ? [{ label: "Limits and breakers", to: "limits" }] : []);
  const off = reasonOff("operator", null);
  useActions([
    { label: "Set a limit…", off, run: () => setAsked({ what: "limit", limit: null }) },
    { label: "Open a breaker…", off, run: () => setAsked({ what: "open", name: name ?? "" }) },
    { label: "Switch off…", off, run: () => setAsked({ what: "off" }) },
  ]);
  const all = limits.data.value ?? [];
  const change = { onChange: (limit: Limit) => setAsked({ what: "limit", limit }), onRemove: (limit: Limit) => setAsked({ what: "remove", limit }) };
  const rates = all.filter((limit) => limit.rate !== null || limit.concurrency === null);
  const counts = all.filter((limit) => limit.concurrency !== null);
  return (
    <>
      <Answer limits={limits.data.value} breakers={breakers.data.value} switches={switches.data.value} />
      {name && breakers.data.value && !breakers.data.value.some((one) => one.of === name || splitOf(one.of).name === name) && <ClosedBanner name={name} onOpen={() => setAsked({ what: "open", name: splitOf(name).name })} />}
      <div class="stack limits">
        <Card of={limits} title="Rate limits" more={<Add onClick={() => setAsked({ what: "limit", limit: null })}>Set a limit…</Add>}>
          {rates.length > 0 ? <RateTable limits={rates} {...change} /> : <EmptyState line={'@app.task(rate="100/m", per="key")'}>No rate is limited. Limit a type:</EmptyState>}
        </Card>
        <Card of={limits} title="Concurrency" more={<Add onClick={() => setAsked({ what: "limit", limit: null })}>Set a limit…</Add>}>
          {counts.length > 0 ? <ConcurrencyTable limits={counts} {...change} /> : <EmptyState line="@app.task(concurrency=5)">Any number of tasks may run at a time. Limit a type:</EmptyState>}
        </Card>
        <Card of={breakers} title="Breakers" more={<Add onClick={() => setAsked({ what: "open", name: "" })}>Open a breaker…</Add>}>
          {(breakers.data.value?.length ?? 0) > 0 ? (
            <BreakerTable breakers={breakers.data.value ?? []} chosen={name ?? ""} onClose={(breaker) => setAsked({ what: "close", breaker })} />
          ) : (
            <EmptyState>All breakers are closed. One opens where failures follow each other, and closes when a try succeeds.</EmptyState>
          )}
        </Card>
        <Card of={switches} title="Switches" more={<Add onClick={() => setAsked({ what: "off" })}>Switch off…</Add>}>
          {(switches.data.value?.length ?? 0) > 0 ? (
            <SwitchTable switches={switches.data.value ?? []} onSwitchOn={(off) => setAsked({ what: "on", off })} />
          ) : (
            <EmptyState>Nothing is switched off. A switch stops tasks of a type, a key or a tag without a deploy.</EmptyState>
          )}
        </Card>
      </div>
      {asked && <AskedDialog key={asked.what} asked={asked} onRemove={change.onRemove} onDone={refresh} onClose={() => setAsked(null)} />}
    </>
  );
}

interface AskedDialogProps {
  asked: Asked;
  onRemove: (limit: Limit) => void;
  onDone: () => void;
  onClose: () => void;
}

function AskedDialog({ asked, onRemove, ...rest }: AskedDialogProps) {
  switch (asked.what) {
    case "limit":
      return <LimitDialog limit={asked.limit} onRemove={onRemove} {...rest} />;
    case "remove":
      return <RemoveLimitDialog limit={asked.limit} {...rest} />;
    case "open":
      return <OpenBreakerDialog name={asked.name} {...rest} />;
    case "close":
      return <CloseBreakerDialog breaker={asked.breaker} {...rest} />;
    case "off":
      return <SwitchOffDialog {...rest} />;
    case "on":
      return <SwitchOnDialog off={asked.off} {...rest} />;
  }
}

function Add({ children, onClick }: { children: ComponentChildren; onClick: () => void }) {
  return (
    <Button small needs="operator" onClick={onClick}>
      {children}
    </Button>
  );
}

function ClosedBanner({ name, onOpen }: { name: string; onOpen: () => void }) {
  return (
    <Banner tone="good" action={<Button small needs="operator" onClick={onOpen}>Open it…</Button>}>
      Breaker <Text>{name}</Text> is closed: it holds nothing.
    </Banner>
  );
}

interface AnswerProps {
  limits: readonly Limit[] | null;
  breakers: readonly Breaker[] | null;
  switches: readonly SwitchedOff[] | null;
}

/** What holds tasks back, in a sentence. A task of two limits waits at one of them, so the sums are of different tasks. */
function Answer({ limits, breakers, switches }: AnswerProps) {
  if (!limits || !breakers || !switches) return <div class="sumline">&nbsp;</div>;
  const sum = (rows: readonly { waiting: number }[]) => rows.reduce((total, row) => total + row.waiting, 0);
  const parts = [
    { count: sum(limits), words: "for limits", waits: "limit" },
    { count: sum(breakers), words: `for ${breakers.length === 1 ? "a breaker" : "breakers"}`, waits: "breaker" },
    { count: sum(switches), words: `for ${switches.length === 1 ? "a switch" : "switches"}`, waits: "switch" },
  ].filter((part) => part.count > 0);
  if (parts.length === 0) return <p class="answer">Nothing is held back now.</p>;
  return (
    <p class="answer">
      {parts.map((part, at) => (
        <span key={part.waits}>
          {at > 0 && ", "}
          <Link to="tasks" query={{ q: `waits:${part.waits}` }}>
            <b>{formatCount(part.count)}</b>
            {at === 0 && (part.count === 1 ? " task waits" : " tasks wait")} {part.words}
          </Link>
        </span>
      ))}
      .
    </p>
  );
}
