// A round trip with kafkajs, as a Node service would do it, without a consumer group: kafkajs has no
// assigned-partition consumer, so reading back is judged by its admin client's offsets (by time as well) alone.
// Prints one JSON line; exits 1 with the reason otherwise.
const { Kafka, CompressionTypes, logLevel } = require('kafkajs')

async function main(bootstrap, topic) {
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 3 } })
  const admin = kafka.admin()
  await admin.connect()
  const created = await admin.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor: 1 }] })
  const described = await admin.fetchTopicMetadata({ topics: [topic] })
  const producer = kafka.producer({ idempotent: true })
  await producer.connect()
  const startedAt = Date.now()
  for (const compression of [CompressionTypes.None, CompressionTypes.GZIP]) {
    const messages = Array.from({ length: 50 }, (_, i) => ({
      partition: 0, key: `k${i}`, value: `value-${i}`, headers: { trace: String(i) },
    }))
    await producer.send({ topic, messages, compression })
  }
  await producer.disconnect()
  const offsets = await admin.fetchTopicOffsets(topic)
  const byTime = await admin.fetchTopicOffsetsByTimestamp(topic, startedAt)
  const cluster = await admin.describeCluster()
  const configs = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type: 2, name: topic }] })
  await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '10' }] })
  const afterDelete = await admin.fetchTopicOffsets(topic)
  const plain = `${topic}-defaults`
  const createdByDefaults = await admin.createTopics({ topics: [{ topic: plain }] })
  const createdAgain = await admin.createTopics({ topics: [{ topic: plain }] })
  await admin.deleteTopics({ topics: [topic, plain] })
  await admin.disconnect()
  const first = (list) => list.find((row) => row.partition === 0)
  console.log(JSON.stringify({
    created,
    createdByDefaults,
    createdAgain,
    partitions: described.topics[0].partitions.length,
    end: first(offsets).high,
    byTime: first(byTime).offset,
    low: first(afterDelete).low,
    partitionsAfter: afterDelete.length,
    brokers: cluster.brokers.length,
    configs: configs.resources[0].configEntries.length > 0,
  }))
}

main(process.argv[2], process.argv[3]).catch((error) => {
  console.error(error.stack || String(error))
  process.exit(1)
})
