// A round trip with franz-go, as a Go service would do it, without a consumer group:
// create a topic, produce with every codec (idempotent, the client's default), read it back by
// assigned partition, list offsets, delete. Prints one JSON line; exits 1 with the reason otherwise.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const recordsPerCodec = 50

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func check(step string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", step, err)
		os.Exit(1)
	}
}

func produce(ctx context.Context, bootstrap, topic, name string, codec kgo.CompressionCodec) {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ProducerBatchCompression(codec),
		kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	check("producer", err)
	defer client.Close()
	var records []*kgo.Record
	for i := 0; i < recordsPerCodec; i++ {
		records = append(records, &kgo.Record{Partition: 0, Key: []byte(name), Value: []byte(fmt.Sprintf("%s-%d", name, i)),
			Headers: []kgo.RecordHeader{{Key: "codec", Value: []byte(name)}}})
	}
	check("produce "+name, client.ProduceSync(ctx, records...).FirstErr())
}

func consume(ctx context.Context, bootstrap, topic string, count int) map[string]int {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		topic: {0: kgo.NewOffset().AtStart()}}))
	check("consumer", err)
	defer client.Close()
	seen, next := map[string]int{}, int64(0)
	for int(next) < count {
		fetches := client.PollFetches(ctx)
		check("fetch", fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			if record.Offset != next || string(record.Headers[0].Value) != string(record.Key) {
				check("read", fmt.Errorf("offset %d, expected %d; key %s", record.Offset, next, record.Key))
			}
			next++
			seen[string(record.Key)]++
		})
	}
	return seen
}

func main() {
	bootstrap, topic := os.Args[1], os.Args[2]
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	check("client", err)
	defer client.Close()
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopic(ctx, 2, 1, nil, topic)
	check("create topic", err)
	for name, codec := range codecs {
		produce(ctx, bootstrap, topic, name, codec)
	}
	seen := consume(ctx, bootstrap, topic, recordsPerCodec*len(codecs))
	ends, err := admin.ListEndOffsets(ctx, topic)
	check("list offsets", err)
	end, _ := ends.Lookup(topic, 0)
	_, err = admin.DeleteTopic(ctx, topic)
	check("delete topic", err)
	line, _ := json.Marshal(map[string]any{"seen": seen, "end_offset": end.Offset})
	fmt.Println(string(line))
}
