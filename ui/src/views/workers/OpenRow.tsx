import { useResource } from "../../api/resource";
import type { WorkerInfo, WorkerView } from "../../api/types/workers";
import { Loading, ReadError } from "../../components/Loading";
import { Duration } from "../../components/numbers";
import { tokenText } from "../../filter/tokens";
import { plural } from "../../format/numbers";
import { Link } from "../../router/Link";
import { pathOf } from "../../router/location";
import { Text } from "../../text/Text";
import { unlessPaused, useCalm, useStillUnder } from "../overview/calm";
import { Progress, Running, TaskId, type UsualRuns } from "./running";

const MOST = 5;

/** What a worker runs now, the longest first, under its row. */
export function OpenRow({ worker, usual }: { worker: WorkerInfo; usual: UsualRuns }) {
  const resource = useResource<WorkerView>(() => pathOf("workers", worker.id), { every: unlessPaused(3000) });
  const view = useCalm(resource);
  const { shown, handlers } = useStillUnder({ tasks: view?.running ?? [], now: resource.readAt.value });
  const { tasks, now } = shown;
  const rest = tasks.length - MOST;
  return (
    <div class="inner" {...handlers}>
      <ReadError of={resource} />
      {!view && !resource.error.value && <Loading of={resource} rows={1} />}
      {view && tasks.length === 0 && <p class="c open-none">It runs nothing now.</p>}
      {tasks.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Running now, longest first</th>
              <th scope="col">Id</th>
              <th scope="col" class="num">
                Elapsed
              </th>
              <th scope="col" class="num no-phone">
                Usual p99
              </th>
              <th scope="col" class="no-phone">
                Queue
              </th>
              <th scope="col" class="no-phone">
                Progress
              </th>
            </tr>
          </thead>
          <tbody>
            {tasks.slice(0, MOST).map((task) => (
              <tr key={task.id}>
                <td>
                  <Text>{task.type}</Text>
                </td>
                <td>
                  <TaskId id={task.id} />
                </td>
                <td class="num">
                  <Running task={task} usual={usual} now={now} />
                </td>
                <td class="num dim no-phone">
                  <Duration seconds={usual.get(task.type)} />
                </td>
                <td class="mid no-phone">
                  <Text>{task.queue}</Text>
                </td>
                <td class="no-phone">
                  <Progress task={task} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <div class="open-foot">
        {rest > 0 && (
          <Link to="tasks" query={{ q: `status:running ${tokenText("worker", [worker.id])}` }}>
            and {rest} more
          </Link>
        )}
        <Link class="go" to={pathOf("workers", worker.id)}>
          All about this worker
        </Link>
        <span class="dim">
          {plural(worker.task_types.length, "handler")}
          {Object.keys(worker.labels).length > 0 && `, ${plural(Object.keys(worker.labels).length, "label")}`}
        </span>
      </div>
    </div>
  );
}
