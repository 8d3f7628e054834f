package main

import (
	"context"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

var segmentioCodecs = map[string]kafka.Compression{
	"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

// kafka-go: it has no idempotent producer.
type segmentio struct{}

func (segmentio) produce(args arguments, records <-chan record) error {
	writer := &kafka.Writer{
		Addr: kafka.TCP(strings.Split(args.Servers, ",")...), Topic: args.Topic,
		Balancer: kafka.Murmur2Balancer{Consistent: true}, RequiredAcks: kafka.RequireAll,
		Compression: segmentioCodecs[args.Codec], BatchTimeout: 5 * time.Millisecond,
	}
	ctx := context.Background()
	var messages []kafka.Message
	flush := func() error {
		sent := messages
		messages = nil
		return writer.WriteMessages(ctx, sent...)
	}
	for one := range records {
		message := kafka.Message{Key: one.key, Value: one.value, Time: time.UnixMilli(one.timestamp)}
		for _, each := range one.headers {
			message.Headers = append(message.Headers, kafka.Header{Key: each.name, Value: each.value})
		}
		if messages = append(messages, message); len(messages) == 1000 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(messages) > 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	return writer.Close()
}

func (segmentio) consume(args arguments) ([]record, error) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: strings.Split(args.Servers, ","), GroupID: args.Group, Topic: args.Topic,
		StartOffset: kafka.FirstOffset, MaxWait: 200 * time.Millisecond,
	})
	ctx := context.Background()
	var received []record
	var messages []kafka.Message
	for len(received) < args.Count {
		message, err := reader.FetchMessage(ctx)
		if err != nil {
			return nil, err
		}
		messages = append(messages, message)
		row := record{
			int32(message.Partition), message.Offset, message.Time.UnixMilli(), message.Key,
			message.Value, nil,
		}
		for _, each := range message.Headers {
			row.headers = append(row.headers, header{each.Key, each.Value})
		}
		received = append(received, row)
	}
	if err := reader.CommitMessages(ctx, messages...); err != nil {
		return nil, err
	}
	return received, reader.Close()
}

func (segmentio) offsets(args arguments) (map[int32]int64, error) {
	servers := strings.Split(args.Servers, ",")
	client := &kafka.Client{Addr: kafka.TCP(servers...)}
	ctx := context.Background()
	metadata, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{args.Topic}})
	if err != nil {
		return nil, err
	}
	found := map[int32]int64{}
	for _, partition := range metadata.Topics[0].Partitions {
		conn, err := kafka.DialLeader(ctx, "tcp", servers[0], args.Topic, partition.ID)
		if err != nil {
			return nil, err
		}
		found[int32(partition.ID)], err = conn.ReadOffset(time.UnixMilli(args.Timestamp))
		conn.Close()
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
