import { describe, expect, it } from "vitest";
import { matchPath } from "./routes";

describe("matchPath", () => {
  it.each([
    ["", "overview", {}],
    ["tasks", "tasks", {}],
    ["tasks/new", "submit", {}],
    ["tasks/01a1", "task", { id: "01a1" }],
    ["queues/a%2Fb", "queue", { name: "a/b" }],
    ["schedules/close_day/edit", "schedule-edit", { id: "close_day" }],
    ["schedules/new", "schedule-new", {}],
    ["limits/breakers/charge", "breaker", { name: "charge" }],
    ["events/audit", "audit", {}],
    ["settings/tokens", "settings-tab", { tab: "tokens" }],
    ["tasks/a/b/c", "not-found", {}],
    ["queues/%E0%A4%A", "queue", { name: "%E0%A4%A" }],
  ])("%s is %s", (path, name, params) => {
    const found = matchPath(path);
    expect(found.route.name).toBe(name);
    expect(found.params).toEqual(params);
  });
});
