import type { IncomingMessage, ServerResponse } from "node:http";
import type { Plugin } from "vite";

const SESSION = {
  caller: { name: "ines", role: "operator", rights: ["operate", "submit", "view"], via: "session" },
  namespace: "shop",
  namespaces: ["shop", "shop-test"],
  version: "dev",
  masked: false,
};
const STATUSES = { pending: 2242, blocked: 46, ready: 1668, assigned: 0, running: 63, retrying: 26, success: 948201, failed: 0, dead: 51, cancelled: 1137 };
const COUNTS = { time: new Date().toISOString(), tasks: STATUSES, schedules: 24, queues: 5, workers: 6, held: 412, breakers: 1, firing: 1 };

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.statusCode = status;
  response.setHeader("content-type", status < 400 ? "application/json" : "application/problem+json");
  response.end(JSON.stringify(body));
}

function stream(request: IncomingMessage, response: ServerResponse): void {
  response.setHeader("content-type", "text/event-stream");
  response.setHeader("cache-control", "no-store");
  let seq = 1000;
  const facts = () => {
    seq += 1;
    const event = { seq, at: new Date().toISOString(), kind: "task.succeeded", id: `stub-${seq}`, type: "send_email", queue: "email", worker_id: "web-1", attempt: 1, duration: 0.2, detail: null };
    response.write(`id: ${seq}\nevent: events\ndata: ${JSON.stringify([event])}\n\n`);
  };
  const tick = () => response.write(`event: tick\ndata: ${JSON.stringify({ time: new Date().toISOString(), counts: STATUSES, workers: 6 })}\n\n`);
  tick();
  const timer = setInterval(() => {
    tick();
    facts();
  }, 1000);
  request.on("close", () => clearInterval(timer));
}

/** Just enough of the API for the frame to come alive without a server. Views need a real one (TICKWORK_URL). */
export function stub(): Plugin {
  return {
    name: "tickwork-stub",
    apply: "serve",
    configureServer(server) {
      server.middlewares.use("/api/v1", (request, response) => {
        const path = (request.url ?? "").split("?")[0];
        if (path === "/session") return sendJson(response, 200, SESSION);
        if (path === "/counts") return sendJson(response, 200, COUNTS);
        if (path === "/events/stream") return stream(request, response);
        return sendJson(response, 404, { status: 404, code: "not_found", title: "Not found", detail: "The stub knows only the frame." });
      });
    },
  };
}
