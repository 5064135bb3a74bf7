/** The tail of an id: the ids are UUIDv7, whose heads are all alike. A tick keeps its time. */
export function shortId(id: string): string {
  const tick = id.lastIndexOf("@");
  if (tick >= 0) return id.slice(tick);
  return id.length > 12 ? `…${id.slice(-8)}` : id;
}

const WHOLE_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function isWholeId(text: string): boolean {
  return WHOLE_ID.test(text);
}

/** Names a priority by its band, as the docs do: 10 is high, 5 to 9 normal, below low. */
export function priorityName(priority: number): "high" | "normal" | "low" {
  if (priority >= 10) return "high";
  return priority >= 5 ? "normal" : "low";
}
