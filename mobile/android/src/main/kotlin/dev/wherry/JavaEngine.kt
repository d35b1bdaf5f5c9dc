package dev.wherry

import java.io.File
import java.util.concurrent.CompletableFuture
import java.util.function.Consumer
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.future.future

/**
 * The API of [MLCEngine] for Java: futures instead of coroutines, a callback instead of a flow.
 *
 * Cancelling a future aborts its request, or its load. Callbacks run on threads of a pool.
 */
public class JavaEngine private constructor(private val engine: MLCEngine) : AutoCloseable {
    private val scope = CoroutineScope(SupervisorJob() + Dispatchers.Default)

    /** Returns the whole answer to a conversation. */
    public fun chat(request: Request): CompletableFuture<Completion> =
        scope.future { engine.chat.completions.create(request) }

    /**
     * Passes the answer to a conversation to a callback in chunks; the future completes after the
     * last.
     */
    public fun chat(request: Request, onChunk: Consumer<Chunk>): CompletableFuture<Void?> =
        scope.future {
            engine.chat.completions.stream(request).collect(onChunk::accept)
            null
        }

    /** Returns the whole text that continues a text. */
    public fun complete(request: Request): CompletableFuture<Completion> =
        scope.future { engine.completions.create(request) }

    /** Returns embeddings for the fields of the server's `/v1/embeddings`. */
    public fun embed(request: Request): CompletableFuture<Embeddings> = scope.future { engine.embed(request) }

    /** Returns a ranking for the fields of the server's `/rerank`. */
    public fun rerank(request: Request): CompletableFuture<Ranking> = scope.future { engine.rerank(request) }

    /** Returns classes for the fields of the server's `/classify`. */
    public fun classify(request: Request): CompletableFuture<Classification> =
        scope.future { engine.classify(request) }

    public fun stats(): EngineStats = engine.stats()

    /** Frees idle caches, as [MLCEngine.trim] does. */
    public fun trim(): Unit = engine.trim()

    /**
     * Aborts running requests and frees the model. Futures of running and later requests fail with
     * [EngineClosedException].
     */
    override fun close(): Unit = engine.close()

    public companion object {
        private val loads = CoroutineScope(SupervisorJob() + Dispatchers.Default)

        /** Loads a model, as [MLCEngine.load] does. */
        @JvmStatic
        @JvmOverloads
        public fun load(
            folder: File,
            options: EngineOptions = EngineOptions(),
            onProgress: Consumer<LoadProgress> = Consumer { },
        ): CompletableFuture<JavaEngine> =
            loads.future { JavaEngine(MLCEngine.load(folder, options, onProgress::accept)) }
    }
}
