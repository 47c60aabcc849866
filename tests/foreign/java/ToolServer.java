/*
 * Runs Apache Kafka's commands one after the other in one JVM: a start-up for a whole module of tests, not one a command.
 *
 * A line on stdin is what the command reads, a class name and its arguments, each in base64, parted by blanks. The answer is one line: the exit
 * status, then stdout and stderr in base64. What a command prints after it asked to exit does not count: the exit is an
 * exception here, and some commands report that too.
 */
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

public class ToolServer {
    private static final PrintStream ANSWERS = System.out;
    private static final Printed OUT = new Printed();
    private static final Printed ERR = new Printed();
    private static final List<Runnable> HOOKS = new ArrayList<>();
    private static String answer;

    /** Stays in place from one command to the next: Scala's Console keeps the first stream that it finds. */
    private static final class Printed extends OutputStream {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int one) {
            bytes.write(one);
        }

        @Override
        public synchronized void write(byte[] some, int start, int length) {
            bytes.write(some, start, length);
        }

        synchronized byte[] take() {
            byte[] taken = bytes.toByteArray();
            bytes.reset();
            return taken;
        }
    }

    private static final class Exited extends Error {
    }

    public static void main(String[] none) throws Exception {
        Exit.Procedure exit = (status, message) -> {
            remember(status);
            throw new Exited();
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        System.setOut(new PrintStream(OUT, true, "UTF-8"));
        System.setErr(new PrintStream(ERR, true, "UTF-8"));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = Arrays.stream(line.split(" ")).map(ToolServer::decoded).toArray(String[]::new);
            System.setIn(new ByteArrayInputStream(words[0].getBytes(StandardCharsets.UTF_8)));
            run(words[1], Arrays.copyOfRange(words, 2, words.length));
            ANSWERS.println(answer);
            ANSWERS.flush();
        }
    }

    private static void run(String tool, String[] arguments) throws Exception {
        OUT.take();
        ERR.take();
        answer = null;
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
            remember(0);
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Exited)) {
                thrown.getCause().printStackTrace();
            }
            remember(1);
        }
        // As at the end of a process: the console producer, for one, sends what it has read only then.
        HOOKS.forEach(Runnable::run);
        HOOKS.clear();
    }

    private static void remember(int status) {
        if (answer == null) {
            System.out.flush();
            System.err.flush();
            answer = status + " " + encoded(OUT) + " " + encoded(ERR);
        }
    }

    private static String encoded(Printed printed) {
        // Never empty, so that the line always has three words.
        return "=" + Base64.getEncoder().encodeToString(printed.take());
    }

    private static String decoded(String word) {
        return new String(Base64.getDecoder().decode(word.substring(1)), StandardCharsets.UTF_8);
    }
}
