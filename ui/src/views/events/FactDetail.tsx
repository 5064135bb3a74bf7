import type { EventRow } from "../../api/types/events";
import { Button } from "../../components/Button";
import { CopyButton } from "../../components/CopyButton";
import { KeyValue } from "../../components/KeyValue";
import { parseTraceback } from "../../components/parseTraceback";
import { TimeAgo } from "../../components/TimeAgo";
import { Traceback } from "../../components/Traceback";
import { formatExact, toMillis } from "../../format/times";
import { zone } from "../../state/prefs";
import { Text } from "../../text/Text";
import { type EventFilter } from "./filter";
import { familyOf } from "./kinds";

interface FactDetailProps {
  fact: EventRow;
  filter: EventFilter;
  onFilter: (filter: EventFilter) => void;
}

/** All that the log has of one fact, and what else to look for. */
export function FactDetail({ fact, filter, onFilter }: FactDetailProps) {
  const family = familyOf(fact.kind);
  return (
    <div class="inner fact">
      <KeyValue
        facts={[
          ["Moment", <>{formatExact(toMillis(fact.at), zone.value)}, <TimeAgo at={fact.at} /></>],
          [family === "task" ? "Task" : "Name", <span class="row"><span class="mono break"><Text>{fact.id}</Text></span><CopyButton text={fact.id} label="Copy the id" /></span>],
          ["Number", <span class="mono">{fact.seq}</span>],
        ]}
      />
      <Detail text={fact.detail} />
      <div class="btn-row fact-acts">
        {filter.id !== fact.id && <Button small onClick={() => onFilter({ id: fact.id })}>Only this {family === "leader" ? "node" : family}</Button>}
        {filter.kind !== fact.kind && <Button small onClick={() => onFilter({ ...filter, kind: fact.kind })}>Only {fact.kind}</Button>}
        {fact.type && filter.type !== fact.type && <Button small onClick={() => onFilter({ ...filter, type: fact.type })}>Only type <Text>{fact.type}</Text></Button>}
        {fact.worker_id && filter.worker !== fact.worker_id && <Button small onClick={() => onFilter({ ...filter, worker: fact.worker_id })}>Only this worker</Button>}
      </div>
    </div>
  );
}

/** Most details are a line; errors come with their traceback. */
function Detail({ text }: { text: string }) {
  if (!text) return null;
  const frames = parseTraceback(text);
  if (frames.length > 0) return <Traceback error={text.split("\n", 1)[0] ?? ""} frames={frames} text={text} />;
  return (
    <pre class="fact-text">
      <Text>{text}</Text>
    </pre>
  );
}
