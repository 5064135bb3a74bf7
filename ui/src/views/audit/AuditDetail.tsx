import type { AuditRow } from "../../api/types/events";
import { KeyValue } from "../../components/KeyValue";
import { formatCount } from "../../format/numbers";
import { formatExact, toMillis } from "../../format/times";
import { zone } from "../../state/prefs";
import { Text } from "../../text/Text";
import { Result } from "./columns";
import { Target } from "./Target";

/** One entry whole: nothing of it is cut. */
export function AuditDetail({ row }: { row: AuditRow }) {
  return (
    <div class="inner">
      <KeyValue
        facts={[
          ["Moment", formatExact(toMillis(row.at), zone.value)],
          ["Who", <><Text>{row.who || "unknown"}</Text>{row.role && <>, <Text>{row.role}</Text></>}</>],
          ["From where", <Text>{[row.via, row.address].filter(Boolean).join(", ")}</Text>],
          ["What", <Text>{row.what}</Text>],
          ["Target", row.target ? <Target row={row} /> : null],
          ["Detail", row.detail ? <span class="audit-text"><Text>{row.detail}</Text></span> : null],
          ["Result", <Result result={row.result} />],
          ["Count", row.count > 1 ? `${formatCount(row.count)} times` : null],
          ["Entry", <span class="mono"><Text>{row.id}</Text></span>],
        ]}
      />
    </div>
  );
}
