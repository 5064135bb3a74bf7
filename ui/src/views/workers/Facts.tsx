import type { WorkerInfo } from "../../api/types/workers";
import { Card } from "../../components/Card";
import { KeyValue } from "../../components/KeyValue";
import { Tag } from "../../components/marks";
import { TimeAgo } from "../../components/TimeAgo";
import { formatCount } from "../../format/numbers";
import { Text } from "../../text/Text";
import { QueueLinks } from "../queues/QueueLinks";

export function Facts({ worker }: { worker: WorkerInfo }) {
  const labels = Object.entries(worker.labels);
  return (
    <Card title="Facts" class="worker-facts">
      <KeyValue
        facts={[
          ["Queues", <QueueLinks names={worker.queues} />],
          ["Host", worker.host && <Text>{worker.host}</Text>],
          ["Process", worker.pid > 0 && `pid ${worker.pid}`],
          ["Node", worker.node && worker.node !== worker.id && <Text>{worker.node}</Text>],
          ["Address", worker.address && <Text>{worker.address}</Text>],
          ["Version", worker.version && <span class="mono"><Text>{worker.version}</Text></span>],
          ["Labels", labels.length > 0 && <span class="row">{labels.map(([name, value]) => <Tag key={name}>{`${name}=${value}`}</Tag>)}</span>],
          ["Weight", formatCount(worker.weight)],
          ["Started", <TimeAgo at={worker.started_at} form="date" />],
          ["Lease until", <TimeAgo at={worker.expires_at} form="clock" />],
          ["Asked for", worker.order && <span class="mono"><Text>{worker.order}</Text></span>],
          ["Does", worker.order && <span class="mono"><Text>{worker.follows || "not yet"}</Text></span>],
        ].map(([label, value]) => [label as string, value === "" ? null : value])}
      />
    </Card>
  );
}
