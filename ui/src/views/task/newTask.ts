import type { NewTask, TaskView } from "../../api/types/tasks";

/** What would submit a task like this one, now. What the type decides by itself is left to it. */
export function likeTask(task: TaskView, values: Pick<TaskView, "payload" | "context"> = task): NewTask {
  return {
    type: task.type,
    ...(values.payload === null ? {} : { payload: values.payload }),
    queue: task.queue,
    ...(task.priority === 5 ? {} : { priority: task.priority }),
    ...(task.max_retry === null ? {} : { max_retry: task.max_retry }),
    ...(task.key === null ? {} : { key: task.key }),
    ...(Object.keys(task.tags).length > 0 ? { tags: task.tags } : {}),
    ...(Object.keys(values.context).length > 0 ? { context: values.context } : {}),
  };
}
