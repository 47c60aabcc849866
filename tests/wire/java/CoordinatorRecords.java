import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/** Reads lines "class version hex", decodes each with Kafka's own class and prints the hex of encoding it again. */
public class CoordinatorRecords {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            short version = Short.parseShort(words[1]);
            ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(words[2]));
            Message message = (Message) Class.forName(words[0]).getDeclaredConstructor().newInstance();
            message.read(new ByteBufferAccessor(bytes), version);
            ByteBuffer again = MessageUtil.toByteBufferAccessor(message, version).buffer();
            byte[] encoded = new byte[again.remaining()];
            again.get(encoded);
            System.out.println(HexFormat.of().formatHex(encoded) + " " + bytes.remaining() + " " + message);
        }
    }
}
