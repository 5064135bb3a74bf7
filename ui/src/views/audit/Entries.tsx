import { effect, untracked } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../../api/client";
import { textOfError } from "../../api/errors";
import { useResource, withQuery } from "../../api/resource";
import type { AuditPage, AuditRow, Journal } from "../../api/types/events";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { EmptyState } from "../../components/EmptyState";
import { Table } from "../../components/Table";
import { useRefreshOn, useTopics } from "../../live/hooks";
import { useQueryParam } from "../../router/query";
import { Feed } from "../events/feed";
import { NewerButton } from "../events/NewerButton";
import { AuditDetail } from "./AuditDetail";
import { columnsFor } from "./columns";
import type { AuditFilter } from "./filter";

const SENTENCE: Readonly<Record<Journal, string>> = {
  changes: "Who has changed what, by the dashboard, the API and the command line. The last 100,000 entries are kept.",
  submits: "Who has submitted through the API. The same within ten seconds is counted in one entry.",
  refusals: "What was asked for and refused. The same within ten seconds is counted in one entry.",
  sign_ins: "Who has signed in to the dashboard. The same within ten seconds is counted in one entry.",
};

const EMPTY: Readonly<Record<Journal, string>> = {
  changes: "Nobody has changed anything yet. Pauses, retries, cancels, limits, schedules and tokens are written here, with who did it.",
  submits: "Nothing was submitted through the API yet. What programs submit themselves is in the events.",
  refusals: "Nobody was refused yet. Wrong tokens and missing rights are written here.",
  sign_ins: "Nobody has signed in yet. Whoever does so with a token is written here.",
};

const PAGE_SIZE = 100;

interface Older {
  /** Why it could not be read. */
  problem: string | null;
  isThere: boolean;
  isReading: boolean;
  read: () => Promise<void>;
}

/** The first page follows the journal; what is newer than what is shown waits to be asked for. */
function useEntries(journal: Journal, filter: AuditFilter) {
  const feed = useMemo(() => new Feed<AuditRow>((row) => row.number), []);
  const wanted = { journal, ...filter, limit: PAGE_SIZE };
  const first = useResource<AuditPage>(() => withQuery("audit", wanted), { every: 10_000 });
  const [problem, setProblem] = useState<string | null>(null);
  const [isReading, setReading] = useState(false);
  useEffect(() => {
    let hasBegun = false;
    return effect(() => {
      const page = first.data.value;
      if (!page) return;
      untracked(() => {
        // A page that is not full has looked at thousands of entries: far more than come between two reads.
        const reaches = page.items.length < PAGE_SIZE || page.before === null || page.items.some((row) => row.number <= feed.newest);
        if (!hasBegun || feed.isCut.peek()) feed.begin(page);
        else {
          feed.offer(page.items, reaches);
          // Where nothing stands nothing can be moved.
          if (feed.rows.peek().length === 0 && !feed.show()) feed.begin(page);
        }
        hasBegun = true;
      });
    });
  }, []);
  const read = async () => {
    setReading(true);
    setProblem(null);
    try {
      feed.addOlder(await get<AuditPage>(withQuery("audit", { ...wanted, before: feed.before.peek() })));
    } catch (error) {
      setProblem(textOfError(error));
    } finally {
      setReading(false);
    }
  };
  const older: Older = { problem, isThere: feed.before.value !== null, isReading, read };
  return { feed, first, older };
}

interface EntriesProps {
  journal: Journal;
  filter: AuditFilter;
  onClear: () => void;
}

/** The entries of a journal that fit; made anew for another journal or filter. */
export function Entries({ journal, filter, onClear }: EntriesProps) {
  const { feed, first, older } = useEntries(journal, filter);
  const openRow = useQueryParam("open");
  useTopics("queue", "type", "schedule", "limit", "switch", "breaker", "worker");
  useRefreshOn(() => true, () => void first.refresh());
  const rows = feed.rows.value;
  const isFiltered = Object.keys(filter).length > 0;
  const toggle = (row: AuditRow) => openRow.set(openRow.value === String(row.number) ? "" : String(row.number), "replace");
  return (
    <>
      <div class="sumline pace">
        <span>{SENTENCE[journal]}</span>
        <NewerButton count={feed.waiting.value.length} isBound={feed.isCut.value} one="newer entry" many="newer entries" onShow={() => !feed.show() && void first.refresh()} />
      </div>
      <Card of={first}>
        {rows.length === 0 ? (
          <Nothing text={EMPTY[journal]} isFiltered={isFiltered} older={older} onClear={onClear} />
        ) : (
          <Table
            label={`Audit, ${journal}`}
            rows={rows}
            columns={columnsFor(journal)}
            rowKey={(row) => String(row.number)}
            tall
            onOpen={toggle}
            detail={(row) => (openRow.value === String(row.number) ? <AuditDetail row={row} /> : null)}
            foot={older.isThere ? <OlderButton older={older}>Older entries</OlderButton> : <span>There are no older entries{isFiltered && " that fit"}.</span>}
          />
        )}
      </Card>
    </>
  );
}

function OlderButton({ older, children }: { older: Older; children: string }) {
  return (
    <>
      {older.problem && <span>Older entries could not be read: {older.problem.replace(/\.$/, "")}.</span>}
      <Button small off={older.isReading ? "They are being read." : null} onClick={() => void older.read()}>
        {older.problem ? "Try again" : children}
      </Button>
    </>
  );
}

/** No entry is not the same as none among those that were looked at. */
function Nothing({ text, isFiltered, older, onClear }: { text: string; isFiltered: boolean; older: Older; onClear: () => void }) {
  if (!isFiltered) return <EmptyState>{text}</EmptyState>;
  if (older.isThere) return <EmptyState action={<OlderButton older={older}>Look further back</OlderButton>}>None of the newest entries fits. There are more to look at.</EmptyState>;
  return <EmptyState action={<Button onClick={onClear}>Show all entries</Button>}>No entry fits this filter.</EmptyState>;
}
