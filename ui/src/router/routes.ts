import type { ComponentType } from "preact";

/** What a view is given: the parts of its path. */
export interface ViewProps<Names extends string = never> {
  params: Readonly<Record<Names, string>>;
}

type Load = () => Promise<{ default: ComponentType<ViewProps<string>> }>;

export interface Route {
  name: string;
  /** Parts that start with a colon are handed to the view. */
  pattern: string;
  title: string;
  /** The entry of the sidebar that is marked. */
  section: string;
  load: Load;
  /** The top bar shows the range switch. */
  hasRange?: boolean;
  /** Drawn without the frame. */
  isBare?: boolean;
}

export interface Match {
  route: Route;
  params: Record<string, string>;
}

/** Views say which parts of the path they need; the pattern beside them is what provides these. */
function view<Names extends string>(load: () => Promise<{ default: ComponentType<ViewProps<Names>> }>): Load {
  return load as unknown as Load;
}

const limits = view(() => import("../views/limits"));
const alerts = view(() => import("../views/alerts"));
const settings = view(() => import("../views/settings"));
const scheduleEdit = view(() => import("../views/schedule-edit"));

/** The first that fits wins, so fixed words stand before names. */
export const ROUTES: readonly Route[] = [
  { name: "overview", pattern: "", title: "Overview", section: "overview", load: view(() => import("../views/overview")), hasRange: true },
  { name: "queues", pattern: "queues", title: "Queues", section: "queues", load: view(() => import("../views/queues")) },
  { name: "queue", pattern: "queues/:name", title: "Queue", section: "queues", load: view(() => import("../views/queue")), hasRange: true },
  { name: "tasks", pattern: "tasks", title: "Tasks", section: "tasks", load: view(() => import("../views/tasks")) },
  { name: "submit", pattern: "tasks/new", title: "Submit a task", section: "tasks", load: view(() => import("../views/submit")) },
  { name: "task", pattern: "tasks/:id", title: "Task", section: "tasks", load: view(() => import("../views/task")) },
  { name: "failures", pattern: "failures", title: "Failures", section: "failures", load: view(() => import("../views/failures")) },
  { name: "failure", pattern: "failures/:print", title: "Failure", section: "failures", load: view(() => import("../views/failure")) },
  { name: "schedules", pattern: "schedules", title: "Schedules", section: "schedules", load: view(() => import("../views/schedules")) },
  { name: "schedule-new", pattern: "schedules/new", title: "New schedule", section: "schedules", load: scheduleEdit },
  { name: "schedule", pattern: "schedules/:id", title: "Schedule", section: "schedules", load: view(() => import("../views/schedule")) },
  { name: "schedule-edit", pattern: "schedules/:id/edit", title: "Edit schedule", section: "schedules", load: scheduleEdit },
  { name: "workers", pattern: "workers", title: "Workers", section: "workers", load: view(() => import("../views/workers")) },
  { name: "worker", pattern: "workers/:id", title: "Worker", section: "workers", load: view(() => import("../views/worker")) },
  { name: "limits", pattern: "limits", title: "Limits and breakers", section: "limits", load: limits },
  { name: "breaker", pattern: "limits/breakers/:name", title: "Limits and breakers", section: "limits", load: limits },
  { name: "events", pattern: "events", title: "Events", section: "events", load: view(() => import("../views/events")) },
  { name: "audit", pattern: "events/audit", title: "Audit", section: "events", load: view(() => import("../views/audit")) },
  { name: "alerts", pattern: "alerts", title: "Alerts", section: "alerts", load: alerts },
  { name: "alert", pattern: "alerts/:rule", title: "Alerts", section: "alerts", load: alerts },
  { name: "reports", pattern: "reports", title: "Reports", section: "reports", load: view(() => import("../views/reports")) },
  { name: "settings", pattern: "settings", title: "Settings", section: "settings", load: settings },
  { name: "settings-tab", pattern: "settings/:tab", title: "Settings", section: "settings", load: settings },
  { name: "login", pattern: "login", title: "Sign in", section: "", load: view(() => import("../views/login")), isBare: true },
  ...(import.meta.env.DEV
    ? [{ name: "gallery", pattern: "gallery", title: "Gallery", section: "", load: view(() => import("../gallery/gallery")), hasRange: true }]
    : []),
];

const NOT_FOUND: Route = { name: "not-found", pattern: "", title: "Not found", section: "", load: view(() => import("../views/not-found")) };

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function fit(pattern: string, parts: readonly string[]): Record<string, string> | null {
  const wanted = pattern === "" ? [] : pattern.split("/");
  if (wanted.length !== parts.length) return null;
  const params: Record<string, string> = {};
  for (const [at, want] of wanted.entries()) {
    const part = decode(parts[at] ?? "");
    if (want.startsWith(":")) params[want.slice(1)] = part;
    else if (want !== part) return null;
  }
  return params;
}

export function matchPath(path: string): Match {
  const parts = path === "" ? [] : path.split("/");
  for (const route of ROUTES) {
    const params = fit(route.pattern, parts);
    if (params) return { route, params };
  }
  return { route: NOT_FOUND, params: {} };
}
