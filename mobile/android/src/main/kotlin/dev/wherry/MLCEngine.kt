package dev.wherry

import java.io.File
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.last
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.isActive
import kotlinx.coroutines.withContext
import kotlinx.serialization.KSerializer
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.serializer

/**
 * The progress of a load.
 *
 * @property phase "files" (in bytes, being checked), "tokenizer", "weights", "ready"
 */
public class LoadProgress(public val phase: String, public val done: Long, public val total: Long)

/**
 * Options of an engine. Missing options have the model's own limits.
 *
 * @param context maximum tokens of one request, prompt and answer together
 * @param maxBatch maximum number of requests that are answered together; further requests wait.
 *     Null: as many as the model is compiled for, of `wherry package` 4
 * @param kvTokens number of tokens in the whole KV cache
 * @param threads number of threads for the kernels; null: as many as large cores
 * @param packDir a folder for packed weights; the next load maps them instead of packing them again
 * @param checkMemory whether a load fails at once if the device has too little memory
 * @param more any other option of `wherry_app_open`
 * @param memory bytes that the model may take, of which the KV cache gets a part: see
 *     [MLCEngine.plan]; null: what `/proc/meminfo` says is free. On Android `memoryForModels` tells
 * @param device "cpu", "opencl" or "vulkan"; null: the first of the package's devices that works,
 *     else the CPU; [EngineStats.passedOver] says why
 */
public class EngineOptions @JvmOverloads constructor(
    context: Int? = null,
    maxBatch: Int? = null,
    kvTokens: Int? = null,
    threads: Int? = null,
    packDir: File? = null,
    internal val checkMemory: Boolean = true,
    more: Map<String, JsonElement> = emptyMap(),
    device: String? = null,
    internal val memory: Long? = null,
) {
    internal val json: JsonObject = buildJsonObject {
        context?.let { put("context", JsonPrimitive(it)) }
        maxBatch?.let { put("max_batch", JsonPrimitive(it)) }
        kvTokens?.let { put("kv_tokens", JsonPrimitive(it)) }
        threads?.let { put("threads", JsonPrimitive(it)) }
        packDir?.let { put("pack_dir", JsonPrimitive(it.path)) }
        device?.let { put("device", JsonPrimitive(it)) }
        more.forEach { (name, value) -> put(name, value) }
    }
}

/**
 * Counters of an engine. [json] has all of them.
 *
 * @property device what runs the model: "cpu", "opencl" or "vulkan"
 * @property passedOver code of the package that a load would have preferred, and why it does not run
 *     here: `{"opencl:128": "OpenCL is not installed: ..."}`
 */
public class EngineStats internal constructor(public val json: JsonObject) {
    public val model: String? get() = json.string("model")
    public val device: String? get() = json.string("device")
    public val passedOver: Map<String, String>
        get() = json["passed_over"]?.jsonArray.orEmpty().map { it.jsonObject }
            .associate { it.string("code").orEmpty() to it.string("reason").orEmpty() }
    public val pagesTotal: Long get() = json.long("pages_total") ?: 0
    public val pagesFree: Long get() = json.long("pages_free") ?: 0
}

/** The endpoint for chat completions: messages in, a message out. */
public class ChatCompletions internal constructor(private val app: App) {
    /**
     * Returns the whole answer to messages. Cancelling the coroutine aborts the request.
     *
     * @throws RequestException the request was refused or has failed
     */
    public suspend fun create(request: Request): Completion =
        Completion(answers(app, request.streamed(false)).last())

    public suspend fun create(messages: List<Message>, settings: Settings = Settings()): Completion =
        create(Request.chat(messages, settings))

    /**
     * Returns the answer in chunks; each collection of the flow is a new request. Errors and
     * cancellation as in [create].
     */
    public fun stream(request: Request): Flow<Chunk> = answers(app, request.streamed(true)).map(::Chunk)

    public fun stream(messages: List<Message>, settings: Settings = Settings()): Flow<Chunk> =
        stream(Request.chat(messages, settings))

    /**
     * Returns the answer as a value of a serializable class, to whose schema the model's text is
     * constrained: `parse<Forecast>(messages)`. It needs a package with `--grammar`.
     *
     * @throws UnreadableAnswerException the answer ended before it was whole
     */
    public suspend inline fun <reified T> parse(messages: List<Message>, settings: Settings = Settings()): T =
        parse(serializer<T>(), messages, settings)

    /** Returns the answer as a value that [serializer] reads. */
    public suspend fun <T> parse(
        serializer: KSerializer<T>,
        messages: List<Message>,
        settings: Settings = Settings(),
    ): T {
        val request = constrained(Request.chat(messages, settings).json, serializer.descriptor)
        return decoded(serializer, create(Request(request)).text)
    }
}

/**
 * The endpoint for text completions: a text in, its continuation out. Methods as in
 * [ChatCompletions].
 */
public class Completions internal constructor(private val app: App) {
    public suspend fun create(request: Request): Completion =
        Completion(answers(app, request.streamed(false)).last())

    public suspend fun create(prompt: String, settings: Settings = Settings()): Completion =
        create(Request.text(prompt, settings))

    public fun stream(request: Request): Flow<Chunk> = answers(app, request.streamed(true)).map(::Chunk)

    public fun stream(prompt: String, settings: Settings = Settings()): Flow<Chunk> =
        stream(Request.text(prompt, settings))
}

/** The namespace `engine.chat`, as in OpenAI's own clients. */
public class Chat internal constructor(app: App) {
    public val completions: ChatCompletions = ChatCompletions(app)
}

/**
 * A language model in this process. Any thread may use it; requests run together.
 *
 *     val engine = MLCEngine.load(File(noBackupFilesDir, "models/demo"))
 *     engine.chat.completions.stream(listOf(Message.user("Hello!"))).collect { print(it.text) }
 *     engine.close()
 */
public class MLCEngine private constructor(private val app: App) : AutoCloseable {
    public val chat: Chat = Chat(app)
    public val completions: Completions = Completions(app)

    public fun stats(): EngineStats =
        EngineStats(Json.parseToJsonElement(app.stats().decodeToString()).jsonObject)

    /** Returns a vector for each text, of a model for embeddings; long texts are errors. */
    public suspend fun embed(texts: List<String>, settings: VectorSettings = VectorSettings()): Embeddings =
        embed(embeddingRequest(texts, settings))

    /** Returns embeddings for the fields of the server's `/v1/embeddings`. */
    public suspend fun embed(request: Request): Embeddings = Embeddings(numbersOf(app, "embed", request))

    /** Ranks documents by how well they match a query, by a reranker or a model for embeddings. */
    public suspend fun rerank(
        query: String,
        documents: List<String>,
        settings: VectorSettings = VectorSettings(),
    ): Ranking = rerank(rankingRequest(query, documents, settings))

    /** Returns a ranking for the fields of the server's `/rerank`. */
    public suspend fun rerank(request: Request): Ranking = Ranking(numbersOf(app, "rerank", request))

    /** Returns the class of each text, by a model for sequence classification. */
    public suspend fun classify(texts: List<String>, settings: VectorSettings = VectorSettings()): Classification =
        classify(classRequest(texts, settings))

    /** Returns classes for the fields of the server's `/classify`. */
    public suspend fun classify(request: Request): Classification =
        Classification(numbersOf(app, "classify", request))

    /** Frees the caches of earlier conversations; call it if the system is short of memory. */
    public fun trim(): Unit = app.trim()

    /** The answers to a chat request, for [ChatSession]. */
    internal fun answers(request: JsonObject, stream: Boolean): Flow<JsonObject> =
        answers(app, Request(request).streamed(stream))

    /**
     * Aborts running requests and frees the model; waits for both. An engine that is not closed
     * keeps its memory.
     */
    override fun close(): Unit = app.close()

    /** Closes the engine as [close] does, and waits off the caller's thread. */
    public suspend fun shutdown(): Unit = withContext(NonCancellable + Dispatchers.IO) { close() }

    public companion object {
        /**
         * Loads a folder that `wherry package` has written, off the caller's thread.
         *
         * Cancelling the coroutine ends the load at its next report.
         *
         * @param onProgress called on the thread that loads
         * @throws NotEnoughMemoryException the device has less memory than the model needs
         * @throws WherryException the folder or an option is wrong
         */
        public suspend fun load(
            folder: File,
            options: EngineOptions = EngineOptions(),
            onProgress: (LoadProgress) -> Unit = {},
        ): MLCEngine {
            var loaded: MLCEngine? = null
            try {
                withContext(Dispatchers.IO) {
                    val plan = planOf(folder, options)
                    if (options.checkMemory && plan != null) requireMemory(folder, plan)
                    val here = currentCoroutineContext()
                    loaded = open(folder, bounded(options.json, plan)) { phase, done, total ->
                        onProgress(LoadProgress(phase.decodeToString(), done, total))
                        here.isActive
                    }
                }
                return checkNotNull(loaded)
            } catch (e: CancellationException) {
                loaded?.close() // the load was complete when the coroutine was cancelled
                throw e
            }
        }

        /**
         * Tells what a load of [folder] would take; null: the folder has no readable manifest.
         *
         * A load bounds its KV cache by [MemoryPlan.cache], and fails at once if the plan does not
         * fit.
         */
        @JvmStatic
        @JvmOverloads
        public fun plan(folder: File, options: EngineOptions = EngineOptions()): MemoryPlan? =
            planOf(folder, options)

        /**
         * Limits the threads of all engines from their next step on; 0 removes the limit. Answers
         * stay the same. Call it when the device is hot; `limitThreadsWhenHot` does.
         */
        @JvmStatic
        public fun limitThreads(most: Int): Unit = Native.limitThreads(most)

        private fun bounded(options: JsonObject, plan: MemoryPlan?): JsonObject {
            if (plan == null || plan.available == null || plan.cache <= 0) return options
            return JsonObject(mapOf("kv_memory" to JsonPrimitive(plan.cache)) + options)
        }

        private fun open(folder: File, options: JsonObject, listener: LoadListener): MLCEngine {
            val path = folder.absolutePath.encodeToByteArray()
            val json = options.toString().encodeToByteArray()
            return try {
                MLCEngine(App(Native.open(path, json, listener)))
            } catch (e: LoadCancelled) {
                throw CancellationException("The load was cancelled.", e)
            }
        }
    }
}
