// kafkajs as a command: one verb with its arguments as JSON, records as JSON lines (base64).
'use strict'
const { createRequire } = require('module')
const readline = require('readline')

const args = JSON.parse(process.argv[2])
const load = createRequire(args.packages + '/package.json')
const { Kafka, CompressionTypes, CompressionCodecs, logLevel, Partitioners } = load('kafkajs')

CompressionCodecs[CompressionTypes.Snappy] = load('kafkajs-snappy')
const codecs = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
}
const kafka = new Kafka({ brokers: [args.servers], logLevel: logLevel.ERROR })
const bytes = (text) => Buffer.from(text, 'base64')
const text = (buffer) => buffer.toString('base64')
const mapValues = (object, change) =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]))

async function produce() {
  const producer = kafka.producer({
    idempotent: true,
    createPartitioner: Partitioners.DefaultPartitioner,
  })
  await producer.connect()
  const flush = (messages) =>
    producer.send({ topic: args.topic, acks: -1, compression: codecs[args.codec], messages })
  let messages = []
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [key, value, headers, timestamp] = JSON.parse(line)
    messages.push({
      key: bytes(key),
      value: bytes(value),
      headers: mapValues(headers, bytes),
      timestamp: String(timestamp),
    })
    if (messages.length === 1000) {
      await flush(messages)
      messages = []
    }
  }
  if (messages.length) await flush(messages)
  await producer.disconnect()
}

async function consume() {
  const consumer = kafka.consumer({ groupId: args.group, maxWaitTimeInMs: 200 })
  await consumer.connect()
  await consumer.subscribe({ topic: args.topic, fromBeginning: true })
  const next = new Map()
  const lines = []
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        for (const { offset, timestamp, key, value, headers } of batch.messages) {
          if (lines.length === args.count) break
          next.set(batch.partition, String(BigInt(offset) + 1n))
          const packed = [text(key), text(value), mapValues(headers, text)]
          lines.push(JSON.stringify([batch.partition, offset, timestamp, ...packed]))
        }
        if (lines.length === args.count) resolve()
      },
    })
  })
  const offsets = [...next].map(([partition, offset]) => ({ topic: args.topic, partition, offset }))
  await consumer.commitOffsets(offsets)
  await consumer.disconnect()
  process.stdout.write(lines.join('\n') + '\n')
}

async function time() {
  const admin = kafka.admin()
  await admin.connect()
  const found = await admin.fetchTopicOffsetsByTimestamp(args.topic, args.timestamp)
  await admin.disconnect()
  process.stdout.write(JSON.stringify(found))
}

const verbs = { produce, consume, time }
verbs[args.verb]().catch((error) => {
  console.error(error)
  process.exit(1)
})
