package main

import (
	"context"
	"hash"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

var saramaCodecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4,
	"zstd": sarama.CompressionZSTD,
}

// sarama, with the newest version of Kafka that it knows below 4.
type saramaClient struct{}

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_9_0_0
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Flush.Frequency = 5 * time.Millisecond
	config.Producer.Partitioner = sarama.NewCustomPartitioner(
		sarama.WithAbsFirst(),
		sarama.WithCustomHashFunction(func() hash.Hash32 { return &murmur2{} }))
	config.Net.MaxOpenRequests = 1
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	return config
}

func (saramaClient) produce(args arguments, records <-chan record) error {
	config := saramaConfig()
	config.Producer.Compression = saramaCodecs[args.Codec]
	producer, err := sarama.NewAsyncProducer(strings.Split(args.Servers, ","), config)
	if err != nil {
		return err
	}
	var failure error
	var watching sync.WaitGroup
	watching.Add(2)
	go func() {
		defer watching.Done()
		for range producer.Successes() {
		}
	}()
	go func() {
		defer watching.Done()
		for each := range producer.Errors() {
			failure = each
		}
	}()
	for one := range records {
		sent := &sarama.ProducerMessage{
			Topic: args.Topic, Key: sarama.ByteEncoder(one.key), Value: sarama.ByteEncoder(one.value),
			Timestamp: time.UnixMilli(one.timestamp),
		}
		for _, each := range one.headers {
			sent.Headers = append(
				sent.Headers, sarama.RecordHeader{Key: []byte(each.name), Value: each.value})
		}
		producer.Input() <- sent
	}
	producer.AsyncClose()
	watching.Wait()
	return failure
}

// Collects what the claims of a group's session give, until it is enough.
type collector struct {
	args     arguments
	mutex    sync.Mutex
	received []record
	done     context.CancelFunc
}

func (*collector) Setup(sarama.ConsumerGroupSession) error { return nil }

func (*collector) Cleanup(session sarama.ConsumerGroupSession) error {
	session.Commit()
	return nil
}

func (c *collector) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for {
		select {
		case message, more := <-claim.Messages():
			if !more || !c.take(session, message) {
				return nil
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (c *collector) take(
	session sarama.ConsumerGroupSession, message *sarama.ConsumerMessage,
) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.received) == c.args.Count {
		return false
	}
	row := record{
		message.Partition, message.Offset, message.Timestamp.UnixMilli(), message.Key,
		message.Value, nil,
	}
	for _, each := range message.Headers {
		row.headers = append(row.headers, header{string(each.Key), each.Value})
	}
	c.received = append(c.received, row)
	session.MarkMessage(message, "")
	if len(c.received) == c.args.Count {
		c.done()
	}
	return true
}

func (saramaClient) consume(args arguments) ([]record, error) {
	group, err := sarama.NewConsumerGroup(
		strings.Split(args.Servers, ","), args.Group, saramaConfig())
	if err != nil {
		return nil, err
	}
	ctx, done := context.WithCancel(context.Background())
	defer done()
	collecting := &collector{args: args, done: done}
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{args.Topic}, collecting); err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
	return collecting.received, group.Close()
}

func (saramaClient) offsets(args arguments) (map[int32]int64, error) {
	client, err := sarama.NewClient(strings.Split(args.Servers, ","), saramaConfig())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	partitions, err := client.Partitions(args.Topic)
	if err != nil {
		return nil, err
	}
	found := map[int32]int64{}
	for _, partition := range partitions {
		if found[partition], err = client.GetOffset(args.Topic, partition, args.Timestamp); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// The hash of the Java client's partitioner (MurmurHash2 by Austin Appleby, seed 0x9747b28c), which
// sarama has not.
type murmur2 struct{ data []byte }

func (m *murmur2) Write(data []byte) (int, error) {
	m.data = append(m.data, data...)
	return len(data), nil
}
func (m *murmur2) Sum(prefix []byte) []byte { return prefix }
func (m *murmur2) Reset()                   { m.data = nil }
func (m *murmur2) Size() int                { return 4 }
func (m *murmur2) BlockSize() int           { return 4 }

func (m *murmur2) Sum32() uint32 {
	const mix, shift = uint32(0x5bd1e995), 24
	data := m.data
	sum := uint32(0x9747b28c) ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		word := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
		word *= mix
		word ^= word >> shift
		sum = sum*mix ^ word*mix
	}
	for at := len(data) - 1; at >= 0; at-- {
		sum ^= uint32(data[at]) << (8 * at)
		if at == 0 {
			sum *= mix
		}
	}
	sum ^= sum >> 13
	sum *= mix
	return sum ^ sum>>15
}
