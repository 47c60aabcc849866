import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Consume, transform, produce with Kafka's own client: bootstrap, topic to read, topic to write, transactional id.
 * Every poll is one transaction with the offsets in it. An error ends the process; who started it starts another one.
 */
public class ExactlyOnceCopier {
    public static void main(String[] arguments) {
        String bootstrap = arguments[0];
        String source = arguments[1];
        String target = arguments[2];
        String transactionalId = arguments[3];
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, transactionalId);
                KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, source, transactionalId)) {
            producer.initTransactions();
            consumer.subscribe(List.of(source));
            while (true) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                if (!records.isEmpty()) {
                    copy(consumer, producer, records, target);
                }
            }
        } catch (KafkaException failure) {
            System.err.println("copier: " + failure);
            Runtime.getRuntime().halt(3);
        }
    }

    private static void copy(
            KafkaConsumer<byte[], byte[]> consumer,
            KafkaProducer<byte[], byte[]> producer,
            ConsumerRecords<byte[], byte[]> records,
            String target) {
        Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
        producer.beginTransaction();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            producer.send(new ProducerRecord<>(target, record.partition(), record.key(), record.value()));
            ends.put(
                    new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
        producer.commitTransaction();
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, String transactionalId) {
        Properties settings = common(bootstrap);
        settings.put("transactional.id", transactionalId);
        settings.put("transaction.timeout.ms", "5000");
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        return new KafkaProducer<>(settings);
    }

    /** A static member, so that a successor takes over at once. */
    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String source, String transactionalId) {
        Properties settings = common(bootstrap);
        settings.put("group.id", "copiers-of-" + source);
        settings.put("group.instance.id", transactionalId);
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("max.poll.records", "40");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        return new KafkaConsumer<>(settings);
    }

    private static Properties common(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("reconnect.backoff.ms", "20");
        settings.put("reconnect.backoff.max.ms", "100");
        settings.put("retry.backoff.ms", "20");
        return settings;
    }
}
