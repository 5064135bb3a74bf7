// A remote worker in plain Node, without packages. It speaks the protocol of docs/remote-workers.md:
//
//     WORKER_ID=node-1 WORKER_SECRET_FILE=node-1.secret PORT=8000 node worker.mjs

import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const BODY_MAX = 1 << 20 // bytes
const DEPTH_MAX = 64
const TOLERANCE = 300 // seconds that the clocks of both sides may differ
const REQUESTS_MAX = 100_000 // that are remembered for so long
const CAPACITY = Number(process.env.CAPACITY ?? 10)
const NAME = /^[A-Za-z0-9._:@-]{1,128}$/

// --- what it can do: a function for each type of task

class Failure extends Error {
  constructor(message, { retry = true } = {}) {
    super(message)
    this.retry = retry
  }
}

const tasks = {
  async upper(payload) {
    if (typeof payload !== 'string') throw new Failure('upper takes a text', { retry: false })
    return payload.toUpperCase()
  },

  async sum(payload) {
    return payload.reduce((total, each) => total + each, 0)
  },

  // Ends when its time is over, or when it is cancelled.
  async wait(payload, call) {
    await new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, payload * 1000)
      call.signal.addEventListener('abort', () => {
        clearTimeout(timer)
        reject(call.signal.reason)
      })
    })
    return 'waited'
  },
}

// --- signatures

const workerId = process.env.WORKER_ID ?? 'node-1'
const hmac = (key, text) => createHmac('sha256', key).update(text).digest()
const sha256 = (data) => createHash('sha256').update(data).digest('hex')

function keysOf(file) {
  const secret = Buffer.from(readFileSync(file, 'utf8').trim(), 'hex')
  if (secret.length !== 32) throw new Error(`${file} must hold 64 hexadecimal digits`)
  return {
    id: hmac(secret, 'tickwork v1 id').toString('hex').slice(0, 16),
    call: hmac(secret, 'tickwork v1 call'),
    answer: hmac(secret, 'tickwork v1 answer'),
  }
}

const files = [process.env.WORKER_SECRET_FILE, process.env.WORKER_OLD_SECRET_FILE].filter(Boolean)
const secrets = files.map(keysOf) // two while a secret is changed
if (secrets.length === 0) throw new Error('WORKER_SECRET_FILE must name the file with the secret of this worker')

function signature(key, ...lines) {
  return `v1=${hmac(key, ['v1', ...lines].join('\n')).toString('hex')}`
}

function same(given, wanted) {
  const [a, b] = [Buffer.from(String(given)), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}

// The keys with which a request is signed, or a text that says why it is refused.
function check(request, body) {
  const {
    'tickwork-worker': worker = '',
    'tickwork-key': key = '',
    'tickwork-time': time = '',
    'idempotency-key': id = '',
    'tickwork-signature': given = '',
  } = request.headers
  if (!NAME.test(worker) || !NAME.test(id) || !/^[0-9]{1,12}$/.test(time)) return 'the request is not signed'
  const keys = secrets.find((each) => each.id === key) ?? secrets[0]
  const wanted = signature(keys.call, 'call', request.method, request.url, worker, key, time, id, sha256(body))
  if (!same(given, wanted)) return 'the signature is wrong'
  if (worker !== workerId) return 'the request is for another worker'
  if (Math.abs(Date.now() / 1000 - Number(time)) > TOLERANCE) return 'the request is of another time'
  return keys
}

// --- requests that came before

const seen = new Map() // request id -> its signature, until when it is remembered, and its answer

function remember(id, entry) {
  const now = Date.now() / 1000
  for (const [old, { until }] of seen) {
    if (until >= now) break
    seen.delete(old)
  }
  if (seen.size >= REQUESTS_MAX) return false
  seen.set(id, entry)
  return true
}

// --- answers

const refusal = (status, error, headers = {}) => ({ status, body: { error }, headers })
const running = new Map() // token -> what stops the call

function parsed(body) {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(body)
  let depth = 0
  for (const [mark] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (mark === '[' || mark === '{') depth += 1
    else if (mark === ']' || mark === '}') depth -= 1
    if (depth > DEPTH_MAX) throw new Error(`nested more than ${DEPTH_MAX} levels deep`)
  }
  const value = JSON.parse(text)
  if (value === null || typeof value !== 'object' || typeof value.token !== 'string') throw new Error('it has no token')
  return value
}

async function execute(call) {
  if (typeof call.type !== 'string' || !Object.hasOwn(tasks, call.type)) return refusal(404, 'no such type of task here')
  if (running.size >= CAPACITY) return refusal(429, 'all slots are busy', { 'retry-after': '1' })
  const stop = new AbortController()
  const timer = call.timeout === undefined ? null : setTimeout(() => stop.abort(new Failure('timed out')), call.timeout * 1000)
  running.set(call.token, stop)
  try {
    const result = await tasks[call.type](call.payload, { ...call, signal: stop.signal })
    return { status: 200, body: { status: 'completed', result: result ?? null } }
  } catch (error) {
    return { status: 200, body: { status: 'failed', error: String(error?.message ?? error), retry: error?.retry ?? true } }
  } finally {
    clearTimeout(timer)
    running.delete(call.token)
  }
}

async function cancel({ token }) {
  const stop = running.get(token)
  stop?.abort(new Failure('cancelled', { retry: false }))
  return { status: 200, body: { status: stop === undefined ? 'unknown' : 'cancelled' } }
}

async function act(route, body) {
  let call
  try {
    call = parsed(body)
  } catch (error) {
    return refusal(400, `the body is not what the protocol says: ${error.message}`)
  }
  return route === '/execute' ? execute(call) : cancel(call)
}

const routes = { '/execute': 'POST', '/cancel': 'POST', '/health': 'GET' }

async function answer(request, body) {
  const keys = check(request, body)
  if (typeof keys === 'string') return refusal(401, keys) // not signed: it would fit somebody else's request
  const id = request.headers['idempotency-key']
  const signed = (reply) => {
    const text = JSON.stringify(reply.body)
    const value = signature(keys.answer, 'answer', String(reply.status), workerId, keys.id, id, sha256(text))
    const headers = { 'tickwork-key': keys.id, 'idempotency-key': id, 'tickwork-signature': value }
    return { ...reply, headers: { ...reply.headers, ...headers } }
  }
  if (request.url === '/health') {
    return signed({ status: 200, body: { status: 'ok', running: running.size, capacity: CAPACITY } })
  }
  const given = request.headers['tickwork-signature']
  const before = seen.get(id)
  if (before !== undefined) {
    return before.signature === given ? before.answer : refusal(401, 'another request came under this idempotency key')
  }
  const entry = { signature: given, until: Number(request.headers['tickwork-time']) + TOLERANCE }
  if (!remember(id, entry)) return signed(refusal(429, 'too many calls', { 'retry-after': '60' }))
  entry.answer = act(request.url, body).then(signed)
  return await entry.answer
}

// --- the server

function send(response, { status, body, headers = {} }) {
  const text = JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers })
  response.end(text)
}

const server = createServer((request, response) => {
  if (routes[request.url] !== request.method) return send(response, refusal(404, 'no such path here'))
  const parts = []
  let size = 0
  const tooLarge = () => {
    request.removeAllListeners('data')
    response.once('finish', () => request.destroy())
    send(response, refusal(413, `the body is larger than ${BODY_MAX} bytes`, { connection: 'close' }))
  }
  if (Number(request.headers['content-length'] ?? 0) > BODY_MAX) return tooLarge()
  request.on('data', (part) => {
    size += part.length
    if (size > BODY_MAX) return tooLarge()
    parts.push(part)
  })
  request.on('end', () => {
    if (response.headersSent) return
    answer(request, Buffer.concat(parts)).then(
      (reply) => send(response, reply),
      (error) => {
        console.error(error)
        send(response, refusal(500, 'the worker has failed'))
      },
    )
  })
})
server.requestTimeout = 30_000 // milliseconds for a whole request to arrive
server.listen(Number(process.env.PORT ?? 8000), process.env.HOST ?? '127.0.0.1', () => {
  console.log(`worker ${workerId} listens on port ${server.address().port}`)
})
