import dev.wherry.Chunk;
import dev.wherry.EngineOptions;
import dev.wherry.JavaEngine;
import dev.wherry.Message;
import dev.wherry.Request;
import dev.wherry.RequestException;
import dev.wherry.Settings;
import java.io.File;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import kotlinx.serialization.json.JsonElement;
import kotlinx.serialization.json.JsonElementKt;
import kotlinx.serialization.json.JsonObject;

/**
 * The library as a program in Java uses it: `JavaChecks FOLDER RUNTIME`, RUNTIME TVM's. Prints what it
 * found as JSON.
 */
public final class JavaChecks {
    public static void main(String[] arguments) throws Exception {
        Map<String, JsonElement> runtime =
                Map.of("runtime", JsonElementKt.JsonPrimitive(arguments[1]));
        EngineOptions options = new EngineOptions(null, null, null, 1, null, true, runtime);
        System.out.println(run(new File(arguments[0]), options));
        System.exit(0);
    }

    private static String run(File folder, EngineOptions options) throws Exception {
        String prompt = "Once upon a time";
        Settings settings = new Settings(24, 0.0);
        JavaEngine closed = JavaEngine.load(folder, options).get();
        closed.close();
        String late = "nothing";
        try {
            closed.complete(Request.text(prompt, settings)).get();
        } catch (ExecutionException e) {
            late = e.getCause().getClass().getSimpleName();
        }
        try (JavaEngine engine = JavaEngine.load(folder, options).get()) {
            String text = engine.complete(Request.text(prompt, settings)).get().getText();
            StringBuilder pieces = new StringBuilder();
            Request chat = Request.chat(List.of(Message.user(prompt)), settings);
            engine.chat(chat, (Chunk chunk) -> pieces.append(chunk.getText())).get();
            String refused = "nothing";
            try {
                engine.complete(Request.of("{\"prompt\": []}")).get();
            } catch (ExecutionException e) {
                refused = ((RequestException) e.getCause()).getParam();
            }
            CompletableFuture<?> endless = engine.complete(Request.text(prompt, new Settings(400)));
            endless.cancel(true);
            boolean cancelled = false;
            try {
                endless.get();
            } catch (CancellationException e) {
                cancelled = true;
            }
            while (engine.stats().getPagesFree() != engine.stats().getPagesTotal()) {
                engine.trim();
                Thread.sleep(5);
            }
            return new JsonObject(Map.of(
                            "text", JsonElementKt.JsonPrimitive(text),
                            "pieces", JsonElementKt.JsonPrimitive(pieces.toString()),
                            "late", JsonElementKt.JsonPrimitive(late),
                            "refused", JsonElementKt.JsonPrimitive(refused),
                            "cancelled", JsonElementKt.JsonPrimitive(cancelled)))
                    .toString();
        }
    }

    private JavaChecks() {}
}
