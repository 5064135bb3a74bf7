/** An answer of the API that is not a success, or no answer at all (status 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** The other fields of the problem: what a message may need. */
  readonly extra: Readonly<Record<string, unknown>>;

  constructor(status: number, code: string, detail: string, extra: Readonly<Record<string, unknown>> = {}) {
    super(detail);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.extra = extra;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reads a problem+json body; a proxy may have put something else there. */
export async function errorOf(response: Response): Promise<ApiError> {
  let body: unknown = null;
  try {
    body = await response.json();
  } catch {
    body = null;
  }
  if (!isRecord(body)) return new ApiError(response.status, "unknown", `The server answered with status ${response.status}.`);
  const { status: _, code, detail, title, ...extra } = body;
  const text = typeof detail === "string" && detail ? detail : typeof title === "string" ? title : `The server answered with status ${response.status}.`;
  return new ApiError(response.status, typeof code === "string" ? code : "unknown", text, extra);
}

/** True for a request that was given up on purpose, which is no failure. */
export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** What went wrong, as a sentence. */
export function textOfError(error: unknown): string {
  if (error instanceof ApiError) return error.detail;
  return error instanceof Error ? error.message : String(error);
}
