// BullMQ on Node: the same protocol as `common.py`, a line of JSON asks, a line of JSON answers.
'use strict'

const fs = require('fs')
const readline = require('readline')
const { performance } = require('perf_hooks')
const { Queue, QueueEvents, Worker } = require('bullmq')
const { version } = JSON.parse(fs.readFileSync(require.resolve('bullmq').split('/dist/')[0] + '/package.json'))

const setting = JSON.parse(process.env.BENCH_SETTING)
const { hostname: host, port } = new URL(setting.url)
const connection = { host, port: Number(port), maxRetriesPerRequest: null }
const FILLER = 'x'.repeat(setting.filler)
const CALLERS = 100
const BATCH = Math.min(1000, Math.max(Math.floor(10000000 / setting.filler), 1))
const PATIENCE = 60000
const slots = setting.tasks + setting.warm

const now = () => (performance.timeOrigin + performance.now()) / 1000
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

// The record of common.Tally: times of 8 bytes, then counts of one. Node cannot map a file, so it writes.
const record = fs.openSync(setting.record, 'r+')
const counts = new Uint8Array(slots)
function ran (number) {
  fs.writeSync(record, new Float64Array([now()]), 0, 8, number * 8)
  counts[number] += 1
  fs.writeSync(record, counts, number, 1, slots * 8 + number)
  return number
}

function work () {
  new Worker('bench', async (job) => {
    ran(job.data.number)
    if (job.name === 'nap') await sleep(100)
    return job.data.number
  }, { connection, concurrency: setting.concurrency })
}

async function serve () {
  const queue = new Queue('bench', { connection })
  const events = new QueueEvents('bench', { connection })
  await Promise.all([queue.waitUntilReady(), events.waitUntilReady()])
  const payload = (number) => ({ number, filler: FILLER })
  const submit = (number, name = 'noop', options = undefined) => queue.add(name, payload(number), options)
  const byMany = async (numbers, call) => {
    let next = 0
    const caller = async () => { while (next < numbers.length) await call(numbers[next++]) }
    await Promise.all(Array.from({ length: CALLERS }, caller))
  }
  const bulk = async (numbers) => {
    for (let first = 0; first < numbers.length; first += BATCH) {
      const batch = numbers.slice(first, first + BATCH)
      await queue.addBulk(batch.map((number) => ({ name: 'noop', data: payload(number) })))
    }
  }
  const latency = async (numbers) => {
    const starts = []; const results = []; const time = Buffer.alloc(8)
    for (const number of numbers) {
      await sleep(10)
      const before = now()
      const value = await (await submit(number)).waitUntilFinished(events, PATIENCE)
      results.push(now() - before)
      if (value !== number) throw new Error(`task ${number} came back with ${value}`)
      fs.readSync(record, time, 0, 8, number * 8)
      starts.push(time.readDoubleLE(0) - before)
    }
    return { starts, results }
  }
  const delayed = async (numbers, spread) => {
    const start = now() + 0.5 + 0.5 * spread
    const due = numbers.map((_, place) => Math.round((start + place * spread / numbers.length) * 1000) / 1000)
    const first = numbers[0]
    await byMany(numbers, (number) => submit(number, 'noop', { delay: Math.round((due[number - first] - now()) * 1000) }))
    return { due }
  }
  const plays = {
    one: async (numbers) => { for (const number of numbers) await submit(number) },
    many: (numbers) => byMany(numbers, submit1),
    naps: (numbers) => byMany(numbers, (number) => submit(number, 'nap')),
    bulk,
    fill: bulk,
    latency,
    delayed
  }
  function submit1 (number) { return submit(number) }
  const answer = (facts) => process.stdout.write('> ' + JSON.stringify(facts) + '\n')
  const offers = ['one', 'many', 'bulk', 'drain.10', 'drain.100', 'io.2000', 'latency', 'delayed']
  answer({ about: `BullMQ ${version} on Node ${process.versions.node}, completed jobs kept (default)`, offers })
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const ask = JSON.parse(line)
    const numbers = Array.from({ length: ask.last - ask.first }, (_, place) => ask.first + place)
    const wall = performance.now(); const cpu = process.cpuUsage()
    const facts = await plays[ask.do](numbers, ask.spread)
    const used = process.cpuUsage(cpu)
    answer({ wall: (performance.now() - wall) / 1000, cpu: (used.user + used.system) / 1e6, ...facts })
  }
}

if (process.argv[2] === 'worker') work()
else serve()
