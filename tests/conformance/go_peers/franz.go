package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var franzCodecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// franz-go: idempotent and acks=all by default.
type franz struct{}

func (franz) produce(args arguments, records <-chan record) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(args.Servers, ",")...),
		kgo.ProducerBatchCompression(franzCodecs[args.Codec]),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	var first kgo.FirstErrPromise
	for one := range records {
		sent := &kgo.Record{
			Topic: args.Topic, Key: one.key, Value: one.value, Timestamp: time.UnixMilli(one.timestamp),
		}
		for _, each := range one.headers {
			sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: each.name, Value: each.value})
		}
		client.Produce(context.Background(), sent, first.Promise())
	}
	return first.Err()
}

func received(one *kgo.Record) record {
	row := record{
		one.Partition, one.Offset, one.Timestamp.UnixMilli(), one.Key, one.Value, nil,
	}
	for _, each := range one.Headers {
		row.headers = append(row.headers, header{each.Key, each.Value})
	}
	return row
}

// The first error that the client does not retry. While a coordinator is down, it joins again.
func problem(fetches kgo.Fetches) error {
	for _, each := range fetches.Errors() {
		var session *kgo.ErrGroupSession
		if !errors.As(each.Err, &session) {
			return each.Err
		}
	}
	return nil
}

func (franz) consume(args arguments) ([]record, error) {
	if args.Protocol == "share" {
		return share(args)
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(args.Servers, ",")...), kgo.ConsumerGroup(args.Group),
		kgo.ConsumeTopics(args.Topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	if args.Protocol == "consumer" {
		// Other balancers have no assignor of the broker.
		options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx := context.Background()
	var rows []record
	var taken []*kgo.Record
	for len(rows) < args.Count {
		fetches := client.PollRecords(ctx, args.Count-len(rows))
		if err := problem(fetches); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(one *kgo.Record) {
			taken = append(taken, one)
			rows = append(rows, received(one))
		})
	}
	return rows, client.CommitRecords(ctx, taken...)
}

// Accept exactly `count` records as a member of a share group, and leave, which releases others.
func share(args arguments) ([]record, error) {
	var refused atomic.Pointer[error]
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(args.Servers, ",")...), kgo.ShareGroup(args.Group),
		kgo.ConsumeTopics(args.Topic),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			if err := results.Error(); err != nil {
				refused.Store(&err)
			}
		}),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx := context.Background()
	var rows []record
	for len(rows) < args.Count {
		fetches := client.PollRecords(ctx, args.Count-len(rows))
		if err := problem(fetches); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(one *kgo.Record) { rows = append(rows, received(one)) })
		client.MarkAcks(kgo.AckAccept)
		if err := client.FlushAcks(ctx); err != nil {
			return nil, err
		}
		if failure := refused.Load(); failure != nil {
			return nil, *failure
		}
	}
	return rows, nil
}

func (franz) offsets(args arguments) (map[int32]int64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(args.Servers, ",")...))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	listed, err := kadm.NewClient(client).ListOffsetsAfterMilli(
		context.Background(), args.Timestamp, args.Topic)
	if err != nil {
		return nil, err
	}
	found := map[int32]int64{}
	for partition, each := range listed[args.Topic] {
		found[partition] = each.Offset
	}
	return found, errors.Join(listed.Error(), empty(found))
}

func (franz) create(args arguments) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(args.Servers, ",")...))
	if err != nil {
		return err
	}
	defer client.Close()
	made, err := kadm.NewClient(client).CreateTopic(
		context.Background(), int32(args.Partitions), int16(args.Replicas), nil, args.Topic)
	return errors.Join(err, made.Err)
}

func (franz) committed(args arguments) (map[int32]int64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(args.Servers, ",")...))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	fetched, err := kadm.NewClient(client).FetchOffsets(context.Background(), args.Group)
	if err != nil {
		return nil, err
	}
	found := map[int32]int64{}
	for partition, each := range fetched[args.Topic] {
		found[partition] = each.At
	}
	return found, fetched.Error()
}

func empty(found map[int32]int64) error {
	if len(found) == 0 {
		return fmt.Errorf("no offsets")
	}
	return nil
}
