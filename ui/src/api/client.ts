import { signal } from "@preact/signals";
import { namespace, type QueryValues } from "../router/location";
import { ApiError, errorOf } from "./errors";
import { markReachable, markUnreachable } from "./reach";

export interface RequestOptions {
  query?: QueryValues;
  signal?: AbortSignal;
}

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The address of something in the API, in the current namespace. `what` has no leading slash. */
export function apiUrl(what: string, query: QueryValues = {}): string {
  const url = new URL(`api/v1/${what}`, document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  if (namespace.peek() && !url.searchParams.has("ns")) url.searchParams.set("ns", namespace.peek());
  return url.href;
}

/** Grows when the server does not know the caller any more: the session ended, or its token did. */
export const unauthorised = signal(0);

function headersFor(method: Method, hasBody: boolean): Record<string, string> {
  const headers: Record<string, string> = { accept: "application/json, application/problem+json" };
  // A form on another site cannot send this header, so the server knows that the page itself asked.
  if (method !== "GET") headers["x-tickwork-csrf"] = "1";
  if (hasBody) headers["content-type"] = "application/json";
  return headers;
}

async function send(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    markUnreachable("server");
    throw new ApiError(0, "unreachable", "The server cannot be reached.");
  }
}

async function request<Answer>(method: Method, what: string, body: unknown, options: RequestOptions): Promise<Answer> {
  const hasBody = body !== undefined;
  const response = await send(apiUrl(what, options.query), {
    method,
    headers: headersFor(method, hasBody),
    credentials: "same-origin",
    cache: "no-store",
    ...(hasBody ? { body: JSON.stringify(body) } : {}),
    ...(options.signal ? { signal: options.signal } : {}),
  });
  if (!response.ok) {
    const error = await errorOf(response);
    if (error.status === 401 && what !== "session") unauthorised.value += 1;
    if (error.status === 503) markUnreachable("store", error.detail, error.extra);
    // A proxy answers so for a server that is down.
    if (error.status === 502 || error.status === 504) markUnreachable("server");
    throw error;
  }
  markReachable(what === "session" ? "server" : "store");
  if (response.status === 204) return undefined as Answer;
  return (await response.json()) as Answer;
}

export function get<Answer>(what: string, options: RequestOptions = {}): Promise<Answer> {
  return request<Answer>("GET", what, undefined, options);
}

export function post<Answer = void>(what: string, body: unknown = {}, options: RequestOptions = {}): Promise<Answer> {
  return request<Answer>("POST", what, body, options);
}

export function put<Answer = void>(what: string, body: unknown, options: RequestOptions = {}): Promise<Answer> {
  return request<Answer>("PUT", what, body, options);
}

export function patch<Answer = void>(what: string, body: unknown, options: RequestOptions = {}): Promise<Answer> {
  return request<Answer>("PATCH", what, body, options);
}

export function del<Answer = void>(what: string, options: RequestOptions = {}): Promise<Answer> {
  return request<Answer>("DELETE", what, undefined, options);
}
