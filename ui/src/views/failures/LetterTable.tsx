import { useState } from "preact/hooks";
import { get } from "../../api/client";
import { textOfError } from "../../api/errors";
import { useResource } from "../../api/resource";
import type { FailedTask, FailedTaskPage } from "../../api/types/failures";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { EmptyState } from "../../components/EmptyState";
import { StatusPill } from "../../components/marks";
import { type Column, Table } from "../../components/Table";
import { TimeAgo } from "../../components/TimeAgo";
import { toast } from "../../components/toasts";
import { shortId } from "../../format/ids";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { rememberTasks } from "../../state/recent";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";

const columns: readonly Column<FailedTask>[] = [
  { id: "status", label: "Status", width: "96px", phone: 2, cell: (row) => <StatusPill status={row.status} /> },
  { id: "type", label: "Type", width: "180px", phone: 1, cut: true, class: "strong", title: (row) => plainText(row.type), cell: (row) => <Text>{row.type}</Text> },
  { id: "id", label: "Id", width: "104px", cell: (row) => <Link class="mono" to={pathOf("tasks", row.id)}>{shortId(row.id)}</Link> },
  { id: "key", label: "Key", width: "140px", cut: true, title: (row) => plainText(row.key ?? ""), cell: (row) => (row.key ? <Text>{row.key}</Text> : <span class="dim">–</span>) },
  { id: "error", label: "Error", phone: 3, cut: true, class: "mid", title: (row) => plainText(row.error ?? ""), cell: (row) => <Text>{row.error}</Text> },
  { id: "attempt", label: "Attempt", num: true, width: "80px", class: "mid", cell: (row) => row.attempt },
  { id: "ended", label: "Died", num: true, width: "130px", phone: 4, cell: (row) => <TimeAgo at={row.finished_at} /> },
];

/** All dead letters, the newest first. */
export function LetterTable() {
  const first = useResource<FailedTaskPage>(() => "dead-letters?limit=100");
  const [later, setLater] = useState<FailedTask[]>([]);
  const [next, setNext] = useState<string | null | undefined>(undefined);
  const rows = [...(first.data.value?.items ?? []), ...later];
  rememberTasks(rows);
  const cursor = next === undefined ? (first.data.value?.cursor ?? null) : next;
  const loadMore = async () => {
    try {
      const page = await get<FailedTaskPage>("dead-letters", { query: { limit: 100, cursor } });
      setLater([...later, ...page.items]);
      setNext(page.cursor);
    } catch (error) {
      toast({ text: textOfError(error), tone: "bad" });
    }
  };
  return (
    <Card of={first}>
      {rows.length === 0 ? (
        <EmptyState>No dead letters. Tasks whose retries are spent come here.</EmptyState>
      ) : (
        <Table label="Dead letters" rows={rows} columns={columns} rowKey={(row) => row.id} rowTo={(row) => pathOf("tasks", row.id)} foot={cursor && <Button small onClick={() => void loadMore()}>Load more</Button>} />
      )}
    </Card>
  );
}
