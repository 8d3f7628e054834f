import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The Java client as one command: a verb, the brokers, and the arguments of the verb.
 *
 * Records are lines with fields between tabs, bytes as base64: on stdin timestamp, key, value and
 * then the name and value of each header; on stdout the partition and the offset come first.
 */
public class Peer {
    public static void main(String[] args) throws Exception {
        String[] words = Arrays.copyOfRange(args, Math.min(2, args.length), args.length);
        switch (args[0]) {
            case "create" -> create(args[1], words[0], Integer.parseInt(words[1]), words[2]);
            case "produce" -> produce(args[1], words[0], words[1]);
            case "consume" -> consume(args[1], words[0], words[1], Integer.parseInt(words[2]), words[3]);
            case "share" -> share(args[1], words[0], words[1], Integer.parseInt(words[2]));
            case "committed" -> committed(args[1], words[0], words[1]);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static Properties properties(String servers) {
        Properties made = new Properties();
        made.put("bootstrap.servers", servers);
        return made;
    }

    private static void create(String servers, String topic, int partitions, String replicas)
            throws Exception {
        try (Admin admin = Admin.create(properties(servers))) {
            NewTopic wanted = new NewTopic(topic, partitions, Short.parseShort(replicas));
            admin.createTopics(List.of(wanted)).all().get();
        }
    }

    private static void produce(String servers, String topic, String codec) throws Exception {
        Properties settings = properties(servers);
        settings.put("compression.type", codec);
        settings.put("linger.ms", "20");
        settings.put("key.serializer", ByteArraySerializer.class);
        settings.put("value.serializer", ByteArraySerializer.class);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        Base64.Decoder base64 = Base64.getDecoder();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings);
                BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] fields = line.split("\t", -1);
                ProducerRecord<byte[], byte[]> row = new ProducerRecord<>(
                    topic, null, Long.valueOf(fields[0]),
                    base64.decode(fields[1]), base64.decode(fields[2]));
                for (int at = 3; at < fields.length; at += 2) {
                    row.headers().add(fields[at], base64.decode(fields[at + 1]));
                }
                sent.add(producer.send(row));
            }
            producer.flush();
        }
        for (Future<RecordMetadata> each : sent) {
            each.get();
        }
    }

    /** Read exactly `count` records as a member of a group, commit exactly those, and leave. */
    private static void consume(
            String servers, String topic, String group, int count, String protocol)
            throws IOException {
        Properties settings = properties(servers);
        settings.put("group.id", group);
        settings.put("group.protocol", protocol);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("key.deserializer", ByteArrayDeserializer.class);
        settings.put("value.deserializer", ByteArrayDeserializer.class);
        List<ConsumerRecord<byte[], byte[]>> received = new ArrayList<>();
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            while (received.size() < count) {
                for (ConsumerRecord<byte[], byte[]> row : consumer.poll(Duration.ofMillis(200))) {
                    if (received.size() < count) {
                        received.add(row);
                        next.put(
                            new TopicPartition(row.topic(), row.partition()),
                            new OffsetAndMetadata(row.offset() + 1));
                    }
                }
            }
            consumer.commitSync(next);
        }
        print(received);
    }

    /** Accept exactly `count` records as a member of a share group, release others, and leave. */
    private static void share(String servers, String topic, String group, int count)
            throws IOException {
        Properties settings = properties(servers);
        settings.put("group.id", group);
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("key.deserializer", ByteArrayDeserializer.class);
        settings.put("value.deserializer", ByteArrayDeserializer.class);
        List<ConsumerRecord<byte[], byte[]>> received = new ArrayList<>();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            while (received.size() < count) {
                for (ConsumerRecord<byte[], byte[]> row : consumer.poll(Duration.ofMillis(200))) {
                    boolean isWanted = received.size() < count;
                    consumer.acknowledge(
                        row, isWanted ? AcknowledgeType.ACCEPT : AcknowledgeType.RELEASE);
                    if (isWanted) {
                        received.add(row);
                    }
                }
                consumer.commitSync().forEach((partition, failure) -> {
                    if (failure.isPresent()) {
                        throw failure.get();
                    }
                });
            }
        }
        print(received);
    }

    private static void print(List<ConsumerRecord<byte[], byte[]>> received) throws IOException {
        Base64.Encoder base64 = Base64.getEncoder();
        try (BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out))) {
            for (ConsumerRecord<byte[], byte[]> row : received) {
                List<String> fields = new ArrayList<>(List.of(
                    Integer.toString(row.partition()), Long.toString(row.offset()),
                    Long.toString(row.timestamp()),
                    base64.encodeToString(row.key()), base64.encodeToString(row.value())));
                for (Header each : row.headers()) {
                    fields.add(each.key());
                    fields.add(base64.encodeToString(each.value()));
                }
                out.write(String.join("\t", fields));
                out.newLine();
            }
        }
    }

    private static void committed(String servers, String topic, String group) throws Exception {
        try (Admin admin = Admin.create(properties(servers))) {
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach(
                (partition, found) -> {
                    if (partition.topic().equals(topic)) {
                        System.out.println(partition.partition() + "\t" + found.offset());
                    }
                });
        }
    }
}
