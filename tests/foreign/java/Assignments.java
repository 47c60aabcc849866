import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

/**
 * What Kafka's own assignors make of groups on stdin, a group ending with "assign NAME":
 * "topic NAME RACK,RACK;RACK;-" (racks of the replicas of each partition), "member ID RACK TOPIC,TOPIC"; "-" is none.
 * The answer is a line "ID TOPIC:NUMBER,..." for each member, then "end".
 */
public class Assignments {
    private static final Map<String, Node> NODES = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        List<PartitionInfo> partitions = new ArrayList<>();
        Map<String, Subscription> members = new LinkedHashMap<>();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("topic")) {
                addTopic(partitions, words[1], words[2].split(";"));
            } else if (words[0].equals("member")) {
                Optional<String> rack = words[2].equals("-") ? Optional.empty() : Optional.of(words[2]);
                members.put(words[1], new Subscription(list(words[3]), null, Collections.emptyList(), -1, rack));
            } else {
                answer(words[1], partitions, members);
                partitions.clear();
                members.clear();
            }
        }
    }

    private static void addTopic(List<PartitionInfo> partitions, String topic, String[] racks) {
        for (int number = 0; number < racks.length; number++) {
            Node[] replicas = list(racks[number]).stream()
                .map(rack -> NODES.computeIfAbsent(rack, name -> new Node(NODES.size(), "host", 9092, name)))
                .toArray(Node[]::new);
            partitions.add(new PartitionInfo(topic, number, Node.noNode(), replicas, replicas));
        }
    }

    private static void answer(String name, List<PartitionInfo> partitions, Map<String, Subscription> members) {
        ConsumerPartitionAssignor assignor =
            name.equals("range") ? new RangeAssignor() : new CooperativeStickyAssignor();
        Cluster cluster =
            new Cluster("c", NODES.values(), partitions, Collections.emptySet(), Collections.emptySet());
        new TreeMap<>(assignor.assign(cluster, new GroupSubscription(members)).groupAssignment()).forEach(
            (member, given) -> System.out.println(member + " " + given.partitions().stream()
                .map(each -> each.topic() + ":" + each.partition())
                .collect(Collectors.joining(","))));
        System.out.println("end");
    }

    private static List<String> list(String word) {
        return word.equals("-") ? Collections.emptyList() : List.of(word.split(","));
    }
}
