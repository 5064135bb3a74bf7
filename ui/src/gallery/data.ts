import type { Status } from "../api/types";
import type { Frame } from "../components/Traceback";
import type { LogLine } from "../components/LogTail";
import type { Phase } from "../components/Timeline";
import type { Run } from "../components/Strip";

/** The same made-up numbers on every draw. */
function noise(seed: number): number {
  const value = Math.sin(seed * 12.9898) * 43758.5453;
  return value - Math.floor(value);
}

export const NOW = Date.now();
export const MINUTES = Array.from({ length: 60 }, (_, at) => NOW - (59 - at) * 60_000);
export const DONE = MINUTES.map((_, at) => Math.round(1700 + noise(at) * 180));
export const SUBMITTED = DONE.map((value, at) => value + Math.round(noise(at + 99) * 40));
export const RETRIED = MINUTES.map((_, at) => (at > 51 && at < 55 ? [14, 60, 52][at - 52]! : Math.round(noise(at + 7) * 5)));
export const DIED = MINUTES.map((_, at) => (at > 51 && at < 55 ? [3, 12, 19][at - 52]! : 0));
export const P50 = MINUTES.map((_, at) => 0.2 + noise(at) * 0.05);
export const P95 = MINUTES.map((_, at) => 0.9 + noise(at + 5) * 0.2 + (at > 51 && at < 55 ? 3 : 0));
export const P99 = MINUTES.map((_, at) => 2 + noise(at + 9) * 0.6 + (at > 51 && at < 55 ? 7 : 0));

export const STATUSES: readonly Status[] = ["pending", "blocked", "ready", "assigned", "running", "retrying", "success", "failed", "dead", "cancelled"];
const TYPES = ["send_email", "reserve_stock", "resize_image", "charge_payment", "render_invoice", "sync_stock"];
const QUEUES = ["email", "default", "media", "payments"];
const REASONS = ["web-2", "behind 36 tasks", "breaker open until 03:13:12", "due in 3 s: timed out after 30 s", "GatewayTimeout: no answer from pay.example in 10 s, and a rather long message behind it"];

export interface TaskRow {
  id: string;
  status: Status;
  type: string;
  key: string;
  queue: string;
  attempt: number;
  wait: number;
  run: number | null;
  reason: string;
  changed: number;
}

export const TASKS: readonly TaskRow[] = Array.from({ length: 500 }, (_, at) => ({
  id: `01a16b72-110a-7c4e-9b1d-${Math.floor(noise(at) * 0xffffffffffff).toString(16).padStart(12, "0")}`,
  status: STATUSES[Math.floor(noise(at + 3) * 10)]!,
  type: TYPES[Math.floor(noise(at + 4) * TYPES.length)]!,
  key: at === 3 ? "order\u202Etxt.exe" : `order:${88300 + at}`,
  queue: QUEUES[Math.floor(noise(at + 5) * QUEUES.length)]!,
  attempt: 1 + Math.floor(noise(at + 6) * 3),
  wait: noise(at + 8) ** 6 * 600,
  run: noise(at) > 0.3 ? noise(at + 11) ** 3 * 20 : null,
  reason: REASONS[Math.floor(noise(at + 12) * REASONS.length)]!,
  changed: NOW - at * at * 400,
}));

const begin = NOW - 360_000;
export const PHASES: readonly Phase[] = [
  { kind: "queued", from: begin, seconds: 0.3, reason: "4 tasks ahead of it in payments" },
  { kind: "attempt", attempt: 1, status: "failed", from: begin + 300, seconds: 10, reason: "GatewayTimeout, on pay-1" },
  { kind: "backoff", from: begin + 10_308, seconds: 5.2, reason: "retry 1 of 2" },
  { kind: "attempt", attempt: 2, status: "failed", from: begin + 15_594, seconds: 10, reason: "GatewayTimeout, on pay-1" },
  { kind: "backoff", from: begin + 25_601, seconds: 11, reason: "retry 2 of 2" },
  { kind: "held", from: begin + 36_610, seconds: 323, reason: "breaker charge_payment is open" },
];
export const PATH: readonly Status[] = ["ready", "running", "retrying", "ready", "running", "retrying", "ready"];

const library = (name: string): Frame => ({ file: `/venv/lib/python3.12/site-packages/${name}/client.py`, line: 120, function: "send", code: "return await self.handle(request)", library: name });
export const FRAMES: readonly Frame[] = [
  ...["tickwork", "tickwork", "httpx", "httpcore"].map(library),
  { file: "shop/payments.py", line: 88, function: "charge_payment", code: "receipt = await gateway.charge(order.card, order.total)", library: null },
  { file: "shop/gateway.py", line: 41, function: "charge", code: 'raise GatewayTimeout(f"no answer from {host} in {limit} s") from error', library: null },
];

const LOG_TEXTS: readonly [LogLine["level"], string][] = [
  ["info", "charging order 88397, 64.90 EUR"],
  ["debug", "POST pay.example/v2/charges key=order-88397"],
  ["warning", "no answer in 10 s; nothing was charged"],
  ["error", "GatewayTimeout: no answer from pay.example in 10 s"],
];
export const LOG: readonly LogLine[] = Array.from({ length: 24 }, (_, at) => {
  const [level, text] = LOG_TEXTS[at % 4]!;
  return { at: begin + at * 1873, attempt: 1 + Math.floor(at / 12), level, text };
});

export const RUNS: readonly Run[] = Array.from({ length: 30 }, (_, at) => ({
  outcome: at === 12 ? "retried" : at === 20 ? "dead" : at === 24 ? "skipped" : at === 29 ? "running" : "success",
  at: NOW - (29 - at) * 900_000,
  to: "tasks/x",
}));

export const PAYLOAD = {
  order: 88397,
  total: "64.90",
  card: "***",
  link: "https://example.com/not-a-link",
  customer: { id: 40077, country: "FR", address: { street: { name: "Rue de Rivoli", number: 1 } } },
  items: Array.from({ length: 130 }, (_, at) => at),
};
