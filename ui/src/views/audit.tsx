import { effect, untracked } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { apiUrl, get } from "../api/client";
import { textOfError } from "../api/errors";
import { useResource, withQuery } from "../api/resource";
import type { AuditPage, AuditRow, Journal } from "../api/types/events";
import { Banner } from "../components/Banner";
import { Button } from "../components/Button";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { Segments } from "../components/Segments";
import { Table } from "../components/Table";
import { Icon } from "../icons/Icon";
import { useRefreshOn, useTopics } from "../live/hooks";
import { setQuery } from "../router/location";
import { useQueryParam } from "../router/query";
import { reasonAgainst } from "../state/session";
import "../styles/views/audit.css";
import "../styles/views/events.css";
import { AuditDetail } from "./audit/AuditDetail";
import { columnsFor } from "./audit/columns";
import { Feed } from "./events/feed";
import { LogTabs } from "./events/LogTabs";
import { NewerButton } from "./events/NewerButton";

const JOURNALS = [
  { value: "changes", label: "Changes" },
  { value: "submits", label: "Submits" },
  { value: "refusals", label: "Refusals" },
] as const;

const SENTENCE: Readonly<Record<Journal, string>> = {
  changes: "Who has changed what, by the dashboard, the API and the command line. The last 100,000 entries are kept.",
  submits: "Who has submitted through the API. The same within ten seconds is counted in one entry.",
  refusals: "What was asked for and refused. The same within ten seconds is counted in one entry.",
};

const EMPTY: Readonly<Record<Journal, string>> = {
  changes: "Nobody has changed anything yet. Pauses, retries, cancels, limits, schedules and tokens are written here, with who did it.",
  submits: "Nothing was submitted through the API yet. What programs submit themselves is in the events.",
  refusals: "Nobody was refused yet. Wrong tokens and missing rights are written here.",
};

function asJournal(text: string): Journal {
  return JOURNALS.find((one) => one.value === text)?.value ?? "changes";
}

/** Who did what. */
export default function AuditView() {
  const reason = reasonAgainst("operator");
  return (
    <>
      <LogTabs current="audit" />
      {reason ? <Banner>The audit log names people and what they did. {reason}</Banner> : <Log />}
    </>
  );
}

function Log() {
  const chosen = useQueryParam("journal", "changes");
  const journal = asJournal(chosen.value);
  return (
    <>
      <div class="row audit-head">
        <Segments label="Journal" options={JOURNALS} value={journal} onChange={(next) => setQuery({ journal: next === "changes" ? null : next, open: null })} />
        <span class="sp" />
        <a class="btn" href={apiUrl("audit/export", { journal })} download={`audit-${journal}.csv`}>
          <Icon name="download" />
          <span>
            <span class="no-phone">Export </span>CSV
          </span>
        </a>
      </div>
      <Entries journal={journal} key={journal} />
    </>
  );
}

/** The first page follows the journal; what is newer than what is shown waits to be asked for. */
function useEntries(journal: Journal) {
  const feed = useMemo(() => new Feed<AuditRow>((row) => row.number), []);
  const first = useResource<AuditPage>(() => withQuery("audit", { journal }), { every: 10_000 });
  const [problem, setProblem] = useState<string | null>(null);
  const [isReading, setReading] = useState(false);
  useEffect(() => {
    let hasBegun = false;
    return effect(() => {
      const page = first.data.value;
      if (!page) return;
      untracked(() => {
        const reaches = page.before === null || page.items.some((row) => row.number <= feed.newest);
        // Where nothing stands nothing can be moved.
        if (!hasBegun || feed.isCut.peek() || feed.rows.peek().length === 0) feed.begin(page);
        else feed.offer(page.items, reaches);
        hasBegun = true;
      });
    });
  }, []);
  const readOlder = async () => {
    setReading(true);
    setProblem(null);
    try {
      feed.addOlder(await get<AuditPage>(withQuery("audit", { journal, before: feed.before.peek() })));
    } catch (error) {
      setProblem(textOfError(error));
    } finally {
      setReading(false);
    }
  };
  return { feed, first, problem, isReading, readOlder };
}

function Entries({ journal }: { journal: Journal }) {
  const { feed, first, problem, isReading, readOlder } = useEntries(journal);
  const openRow = useQueryParam("open");
  useTopics("queue", "type", "schedule", "limit", "switch", "breaker", "worker");
  useRefreshOn(() => true, () => void first.refresh());
  const rows = feed.rows.value;
  const toggle = (row: AuditRow) => openRow.set(openRow.value === String(row.number) ? "" : String(row.number), "replace");
  return (
    <>
      <div class="sumline pace">
        <span>{SENTENCE[journal]}</span>
        <NewerButton count={feed.waiting.value.length} isBound={feed.isCut.value} one="newer entry" many="newer entries" onShow={() => !feed.show() && void first.refresh()} />
      </div>
      <Card of={first}>
        {rows.length === 0 ? (
          <EmptyState>{EMPTY[journal]}</EmptyState>
        ) : (
          <Table
            label={`Audit, ${journal}`}
            rows={rows}
            columns={columnsFor(journal)}
            rowKey={(row) => String(row.number)}
            tall
            onOpen={toggle}
            detail={(row) => (openRow.value === String(row.number) ? <AuditDetail row={row} /> : null)}
            foot={<Foot problem={problem} hasOlder={feed.before.value !== null} isReading={isReading} onOlder={() => void readOlder()} />}
          />
        )}
      </Card>
    </>
  );
}

function Foot({ problem, hasOlder, isReading, onOlder }: { problem: string | null; hasOlder: boolean; isReading: boolean; onOlder: () => void }) {
  if (!hasOlder) return <span>There are no older entries.</span>;
  return (
    <>
      {problem && <span>Older entries could not be read: {problem.replace(/\.$/, "")}.</span>}
      <Button small off={isReading ? "They are being read." : null} onClick={onOlder}>
        {problem ? "Try again" : "Older entries"}
      </Button>
    </>
  );
}
