import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { apiUrl } from "../api/client";
import { type Resource, useResource, withQuery } from "../api/resource";
import type { Report, ReportBy } from "../api/types/reports";
import { Button } from "../components/Button";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { Segments } from "../components/Segments";
import { Select } from "../components/Select";
import type { Sort } from "../components/Table";
import { Icon } from "../icons/Icon";
import { storeNow } from "../state/clock";
import { setQuery } from "../router/location";
import { type QueryParam, useQueryParam } from "../router/query";
import { Answer } from "./reports/Answer";
import { compareRows } from "./reports/compare";
import { CustomRange } from "./reports/CustomRange";
import { before, type Period, periodOf, PRESETS, presetOf, toText } from "./reports/period";
import { ReportChart } from "./reports/ReportChart";
import { ReportTable } from "./reports/ReportTable";
import "../styles/views/reports.css";

const BY: readonly { value: ReportBy; label: string }[] = [
  { value: "type", label: "By type" },
  { value: "queue", label: "By queue" },
  { value: "day", label: "By day" },
  { value: "hour", label: "By hour" },
];

function byOf(text: string): ReportBy {
  return BY.find((one) => one.value === text)?.value ?? "type";
}

function sortOf(text: string, by: ReportBy): Sort {
  if (text === "") return by === "type" || by === "queue" ? { by: "submitted", direction: "descending" } : { by: "name", direction: "ascending" };
  return text.startsWith("-") ? { by: text.slice(1), direction: "descending" } : { by: text, direction: "ascending" };
}

function address(period: Period, by: ReportBy): string {
  return withQuery("reports", { since: toText(period.since), until: toText(period.until), by });
}

export default function ReportsView() {
  const since = useQueryParam("since");
  const until = useQueryParam("until");
  const by = useQueryParam("by", "type");
  const against = useQueryParam("compare", "before");
  const order = useQueryParam("sort");
  // "Until now" is the moment of asking: reading again moves it.
  const asked = useSignal(0);
  const period = () => {
    void asked.value;
    return periodOf(since.value, until.value, storeNow());
  };
  const report = useResource<Report>(() => address(period(), byOf(by.value)));
  const earlier = useResource<Report>(() => (against.value === "before" ? address(before(period()), byOf(by.value)) : null));
  return (
    <>
      <Controls since={since} by={by} against={against} period={period()} onRefresh={() => (asked.value += 1)} />
      <Body report={report} earlier={against.value === "before" ? earlier : null} by={byOf(by.value)} order={order} />
    </>
  );
}

interface ControlsProps {
  since: QueryParam;
  by: QueryParam;
  against: QueryParam;
  period: Period;
  onRefresh: () => void;
}

function Controls({ since, by, against, period, onRefresh }: ControlsProps) {
  const span = { since: toText(period.since), until: toText(period.until), by: byOf(by.value) };
  const choose = (preset: string) => setQuery(preset === "custom" ? { since: toText(period.since), until: toText(period.until) } : { since: preset === "7d" ? null : preset, until: null });
  return (
    <div class="report-controls">
      <Select label="Time" hideLabel options={PRESETS} value={presetOf(since.value)} onChange={choose} />
      {period.preset === "custom" && <CustomRange period={period} />}
      <Segments label="Rows" options={BY} value={byOf(by.value)} onChange={(next) => setQuery({ by: next === "type" ? null : next, sort: null })} />
      <Select
        label="Compare"
        hideLabel
        options={[
          { value: "before", label: "Compare: the period before" },
          { value: "none", label: "Compare with nothing" },
        ]}
        value={against.value === "none" ? "none" : "before"}
        onChange={(next) => against.set(next)}
      />
      <span class="sp" />
      <Button onClick={onRefresh}>Read again</Button>
      <a class="btn" href={apiUrl("reports/export", span)} download={`tickwork-report-by-${span.by}.csv`}>
        <Icon name="download" />
        CSV
      </a>
      <a class="btn" href={apiUrl("reports", span)} download={`tickwork-report-by-${span.by}.json`}>
        <Icon name="download" />
        JSON
      </a>
    </div>
  );
}

interface BodyProps {
  report: Resource<Report>;
  earlier: Resource<Report> | null;
  by: ReportBy;
  order: QueryParam;
}

function Body({ report, earlier, by, order }: BodyProps) {
  const data = report.data.value;
  const past = earlier?.data.value ?? null;
  // Another kind of rows is on its way: what is here does not fit under its heads.
  const fits = data !== null && data.by === by;
  const comparable = past !== null && past.by === by && hasAny(past) ? past : null;
  const rows = useMemo(() => (data ? compareRows(data, comparable) : []), [data, comparable]);
  if (!data || !fits || report.error.value) return <Card of={report}>{null}</Card>;
  if (!hasAny(data)) {
    return (
      <Card>
        {data.through === null ? (
          <EmptyState line={"tickwork submit greet '\"Ada\"'"}>There are no statistics yet. They are counted from the first task on. Submit one:</EmptyState>
        ) : (
          <EmptyState>Nothing happened in this time. Choose a longer one.</EmptyState>
        )}
      </Card>
    );
  }
  const total = { row: data.total, before: comparable?.total ?? null };
  return (
    <div class="stack">
      <Answer report={data} total={total} rows={rows} by={by} wantsCompare={earlier !== null} />
      {(by === "day" || by === "hour") && data.rows.length > 3 && <ReportChart rows={data.rows} by={by} />}
      <Card of={report}>
        <ReportTable rows={rows} total={total} by={by} sort={sortOf(order.value, by)} onSort={(sort) => order.set(`${sort.direction === "descending" ? "-" : ""}${sort.by}`, "replace")} />
      </Card>
    </div>
  );
}

function hasAny({ total }: Report): boolean {
  return total.submitted + total.started + total.success + total.failed + total.dead + total.cancelled > 0;
}
