import type { TypeRow } from "../../api/types/queues";
import type { WorkerInfo } from "../../api/types/workers";
import { Card } from "../../components/Card";
import { EmptyState } from "../../components/EmptyState";
import { formatCount } from "../../format/numbers";
import { Link } from "../../router/Link";
import { Text } from "../../text/Text";
import { signatureOf } from "../queues/signature";

/** What a worker can run, with signatures where this server knows them. */
export function Handlers({ worker, types }: { worker: WorkerInfo; types: readonly TypeRow[] }) {
  const schemas = new Map(types.map((type) => [type.name, type.schema]));
  return (
    <Card title="Handlers" more={formatCount(worker.task_types.length)}>
      {worker.task_types.length === 0 ? (
        <EmptyState>It named no type. It takes any task of its queues.</EmptyState>
      ) : (
        <ul class="handlers">
          {worker.task_types.map((name) => {
            const signature = signatureOf(name, schemas.get(name) ?? null);
            return (
              <li key={name} title={signature}>
                <Link to="queues" query={{ by: "type", open: name }}>
                  <Text>{name}</Text>
                </Link>
                <span class="mono dim">
                  <Text>{signature.slice(name.length)}</Text>
                </span>
              </li>
            );
          })}
        </ul>
      )}
    </Card>
  );
}
