import { clockParts } from "../../format/times";

const LOCAL = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2}))?$/;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** What the clock of a zone shows at a moment, as if it were UTC. */
function wallOf(at: number, zone: string): number {
  const clock = clockParts(at, zone);
  return Date.UTC(Number(clock.year), MONTHS.indexOf(clock.month), Number(clock.day), Number(clock.hour), Number(clock.minute), Number(clock.second));
}

/** The moment at which the clock of a zone shows what a date field holds, in UTC; null while it is not whole. */
export function atInZone(text: string, zone: string): string | null {
  const found = LOCAL.exec(text);
  if (!found) return null;
  const [year, month, day, hour, minute, second] = found.slice(1).map((part) => Number(part ?? 0));
  const wall = Date.UTC(year ?? 0, (month ?? 1) - 1, day ?? 1, hour ?? 0, minute ?? 0, second ?? 0);
  // The offset may be another one at the moment that was found first, so it is looked at twice.
  let at = wall;
  for (let step = 0; step < 2; step += 1) at += wall - wallOf(at, zone);
  return new Date(at).toISOString();
}
