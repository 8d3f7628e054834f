// Clients in Go as one command: a library, a verb and its arguments as JSON, records as JSON lines.
//
//	go_peers '{"library": "franz-go", "verb": "produce", "servers": "...", "topic": "...", ...}'
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
)

// Arguments of a verb; which of them it wants is written at `client`.
type arguments struct {
	Library, Verb, Servers, Topic, Codec, Group, Protocol string
	Count, Partitions, Replicas                           int
	Timestamp                                             int64
}

type header struct {
	name  string
	value []byte
}

// A record as it is sent, and as it is received from a partition.
type record struct {
	partition  int32
	offset     int64
	timestamp  int64 // ms
	key, value []byte
	headers    []header
}

// A client writes with acks=all and the partitioner of the Java client; joins a group, reads
// exactly `count` records, commits exactly those and leaves; looks up the first offset at a time.
type client interface {
	produce(arguments, <-chan record) error
	consume(arguments) ([]record, error)
	offsets(arguments) (map[int32]int64, error)
}

// An administrator creates a topic, and looks up the committed offsets of a group.
type administrator interface {
	create(arguments) error
	committed(arguments) (map[int32]int64, error)
}

var clients = map[string]client{
	"franz-go": franz{}, "sarama": saramaClient{}, "kafka-go": segmentio{},
}

func main() {
	var args arguments
	if err := json.Unmarshal([]byte(os.Args[1]), &args); err != nil {
		fail(err)
	}
	if args.Verb == "versions" {
		versions()
		return
	}
	if err := run(clients[args.Library], args); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func run(chosen client, args arguments) error {
	switch args.Verb {
	case "produce":
		records := make(chan record, 1000)
		read := make(chan error, 1)
		go func() {
			read <- readRecords(records)
			close(records)
		}()
		if err := chosen.produce(args, records); err != nil {
			return err
		}
		return <-read
	case "consume":
		received, err := chosen.consume(args)
		if err != nil {
			return err
		}
		return printRecords(received)
	case "time":
		found, err := chosen.offsets(args)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(found)
	case "create":
		return chosen.(administrator).create(args)
	case "committed":
		found, err := chosen.(administrator).committed(args)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(found)
	}
	return fmt.Errorf("no verb %q", args.Verb)
}

// What a line on stdin and on stdout has: [key, value, [[name, value], ...], timestamp], and before
// them, on stdout, partition and offset. Bytes are base64.
func readRecords(records chan<- record) error {
	lines := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	for lines.More() {
		var headers [][2][]byte
		var one record
		if err := lines.Decode(&[]any{&one.key, &one.value, &headers, &one.timestamp}); err != nil {
			return err
		}
		for _, pair := range headers {
			one.headers = append(one.headers, header{string(pair[0]), pair[1]})
		}
		records <- one
	}
	return nil
}

func printRecords(received []record) error {
	out := bufio.NewWriter(os.Stdout)
	lines := json.NewEncoder(out)
	for _, one := range received {
		headers := [][2][]byte{}
		for _, each := range one.headers {
			headers = append(headers, [2][]byte{[]byte(each.name), each.value})
		}
		line := []any{one.partition, one.offset, one.key, one.value, headers, one.timestamp}
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// The libraries this was built with.
func versions() {
	found := map[string]string{}
	modules := map[string]string{
		"github.com/twmb/franz-go": "franz-go", "github.com/IBM/sarama": "sarama",
		"github.com/segmentio/kafka-go": "kafka-go",
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if name, ours := modules[module.Path]; ours {
				found[name] = module.Version
			}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		fail(err)
	}
}
