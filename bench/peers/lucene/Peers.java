import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.lucene.analysis.LowerCaseFilter;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.minhash.MinHashFilter;
import org.apache.lucene.analysis.shingle.ShingleFilter;
import org.apache.lucene.analysis.standard.StandardTokenizer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;

/**
 * Lucene's MinHashFilter as a contender. One request a line on the standard input, one answer a line on the standard output:
 *
 * <pre>
 *   time CONTENDER COUNT PATH   sketches the first COUNT lines of the file: "ok WALL-SECONDS CPU-SECONDS"
 *   agree CONTENDER PATH        sketches the lines two by two: "ok MEAN-SHARE-OF-EQUAL-POSITIONS"
 * </pre>
 *
 * Anything that goes wrong is answered with "error WHY". The fields are separated by tabs.
 */
public final class Peers {
  private static final int WORDS = 4;
  private static final int POSITIONS = 128;

  /** The analysis chain, made once and fed one text after the other, as Lucene does it when it indexes. */
  private static final class Chain {
    private final Tokenizer tokenizer = new StandardTokenizer();
    private final TokenStream stream;
    private final CharTermAttribute term;

    Chain(int hashes, int buckets) {
      ShingleFilter shingles = new ShingleFilter(new LowerCaseFilter(tokenizer), WORDS, WORDS);
      shingles.setOutputUnigrams(false);
      shingles.setOutputUnigramsIfNoShingles(true);
      stream = new MinHashFilter(shingles, hashes, buckets, 1, buckets > 1);
      term = stream.addAttribute(CharTermAttribute.class);
    }

    /** Runs the chain over a text, puts the terms into the list where there is one, and returns their number. */
    int sketch(String text, List<String> terms) throws IOException {
      tokenizer.setReader(new StringReader(text));
      stream.reset();
      int count = 0;
      while (stream.incrementToken()) {
        count++;
        if (terms != null) {
          terms.add(term.toString());
        }
      }
      stream.end();
      stream.close();
      return count;
    }
  }

  private final Map<String, List<String>> corpora = new HashMap<>();
  private final Map<String, Chain> chains =
      Map.of("Lucene 1x128", new Chain(1, POSITIONS), "Lucene 128x1", new Chain(POSITIONS, 1));
  private long sink;

  private List<String> corpus(String path) throws IOException {
    List<String> lines = corpora.get(path);
    if (lines == null) {
      lines = Files.readAllLines(Path.of(path), StandardCharsets.UTF_8);
      corpora.put(path, lines);
    }
    return lines;
  }

  private static double cpuSeconds() {
    var system = ManagementFactory.getPlatformMXBean(com.sun.management.OperatingSystemMXBean.class);
    return system.getProcessCpuTime() / 1e9;
  }

  private String measure(Chain chain, int count, String path) throws IOException {
    List<String> documents = corpus(path);
    System.gc();
    double cpu = cpuSeconds();
    long wall = System.nanoTime();
    for (String document : documents.subList(0, Math.min(count, documents.size()))) {
      sink += chain.sketch(document, null);
    }
    double seconds = (System.nanoTime() - wall) / 1e9;
    return seconds + "\t" + (cpuSeconds() - cpu);
  }

  /** A term tells its position only by its rank in the stream, which is the same in every document that fills all of them. */
  private String agree(Chain chain, String path) throws IOException {
    List<String> documents = corpus(path);
    double sum = 0;
    for (int i = 0; i + 1 < documents.size(); i += 2) {
      List<String> a = new ArrayList<>();
      List<String> b = new ArrayList<>();
      chain.sketch(documents.get(i), a);
      chain.sketch(documents.get(i + 1), b);
      int equal = 0;
      for (int p = 0; p < Math.min(a.size(), b.size()); p++) {
        equal += a.get(p).equals(b.get(p)) ? 1 : 0;
      }
      sum += (double) equal / POSITIONS;
    }
    return String.valueOf(sum / (documents.size() / 2));
  }

  private String answer(String[] fields) throws IOException {
    Chain chain = chains.get(fields[1]);
    if (chain == null) {
      throw new IOException("unknown contender");
    }
    return fields[0].equals("time") ? measure(chain, Integer.parseInt(fields[2]), fields[3]) : agree(chain, fields[2]);
  }

  public static void main(String[] args) throws IOException {
    Peers peers = new Peers();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      try {
        System.out.println("ok\t" + peers.answer(line.split("\t")));
      } catch (IOException | RuntimeException e) {
        System.out.println("error\t" + e);
      }
      System.out.flush();
    }
  }
}
