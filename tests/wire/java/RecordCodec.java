import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.utils.Utils;

/**
 * Answers each line with one line. A record is written timestamp,key,value,name:value;name:value in hex, with - for null.
 *   murmur2 HEX                                  the hash
 *   build CODEC ID EPOCH SEQUENCE TXN RECORD...  the batch that the Java producer would send
 *   read HEX                                     the records of the batches, after their CRC was checked
 */
public class RecordCodec {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            System.out.println(switch (words[0]) {
                case "murmur2" -> String.valueOf(Utils.murmur2(bytes(words[1])));
                case "build" -> build(words);
                default -> read(words[1]);
            });
        }
    }

    static String build(String[] words) {
        Compression codec = Compression.of(CompressionType.forName(words[1])).build();
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1024), codec, 0L,
            Long.parseLong(words[2]), Short.parseShort(words[3]), Integer.parseInt(words[4]), Boolean.parseBoolean(words[5]));
        for (int i = 6; i < words.length; i++) {
            String[] parts = words[i].split(",", -1);
            builder.append(Long.parseLong(parts[0]), bytes(parts[1]), bytes(parts[2]), headers(parts[3]));
        }
        ByteBuffer built = builder.build().buffer();
        byte[] content = new byte[built.remaining()];
        built.get(content);
        return hex(content);
    }

    static String read(String batches) {
        List<String> answer = new ArrayList<>();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(batches))).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                List<String> headers = new ArrayList<>();
                for (Header header : record.headers())
                    headers.add(hex(header.key().getBytes(StandardCharsets.UTF_8)) + ":" + hex(header.value()));
                answer.add(record.timestamp() + "," + hex(Utils.toNullableArray(record.key())) + ","
                    + hex(Utils.toNullableArray(record.value())) + "," + String.join(";", headers));
            }
        }
        return String.join(" ", answer);
    }

    static Header[] headers(String text) {
        if (text.isEmpty())
            return new Header[0];
        List<Header> headers = new ArrayList<>();
        for (String header : text.split(";", -1)) {
            String[] parts = header.split(":", -1);
            headers.add(new RecordHeader(new String(bytes(parts[0]), StandardCharsets.UTF_8), bytes(parts[1])));
        }
        return headers.toArray(new Header[0]);
    }

    static byte[] bytes(String hex) {
        return hex.equals("-") ? null : HexFormat.of().parseHex(hex);
    }

    static String hex(byte[] content) {
        return content == null ? "-" : HexFormat.of().formatHex(content);
    }
}
