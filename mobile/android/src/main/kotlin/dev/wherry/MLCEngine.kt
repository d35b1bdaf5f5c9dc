package dev.wherry

import java.io.File
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.last
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.isActive
import kotlinx.coroutines.withContext
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.jsonObject

/**
 * How far a load is.
 *
 * @property phase "files" (in bytes, being checked), "tokenizer", "weights", "ready"
 */
public class LoadProgress(public val phase: String, public val done: Long, public val total: Long)

/**
 * What an engine is made of. Fields that are not set are the model's own limits.
 *
 * @param context tokens of one request, prompt and answer
 * @param maxBatch requests that are answered together; more wait
 * @param kvTokens tokens that the cache holds in all
 * @param threads of the kernels; null: all cores
 * @param packDir a folder that keeps the weights as the kernels read them; they are mapped from
 *     there at the next load, instead of being packed again
 * @param checkMemory whether a load fails at once where the device has too little memory
 * @param more any other option of `wherry_app_open`
 */
public class EngineOptions @JvmOverloads constructor(
    context: Int? = null,
    maxBatch: Int? = null,
    kvTokens: Int? = null,
    threads: Int? = null,
    packDir: File? = null,
    internal val checkMemory: Boolean = true,
    more: Map<String, JsonElement> = emptyMap(),
) {
    internal val json: JsonObject = buildJsonObject {
        context?.let { put("context", JsonPrimitive(it)) }
        maxBatch?.let { put("max_batch", JsonPrimitive(it)) }
        kvTokens?.let { put("kv_tokens", JsonPrimitive(it)) }
        threads?.let { put("threads", JsonPrimitive(it)) }
        packDir?.let { put("pack_dir", JsonPrimitive(it.path)) }
        more.forEach { (name, value) -> put(name, value) }
    }
}

/** What an engine is doing. [json] has all that it says. */
public class EngineStats internal constructor(public val json: JsonObject) {
    public val model: String? get() = json.string("model")
    public val pagesTotal: Long get() = json.long("pages_total") ?: 0
    public val pagesFree: Long get() = json.long("pages_free") ?: 0
}

/** Chat completions: messages in, a message out. */
public class ChatCompletions internal constructor(private val app: App) {
    /**
     * The whole answer. Cancelling the coroutine aborts the request.
     *
     * @throws RequestException the request was refused or has failed
     */
    public suspend fun create(request: Request): Completion =
        Completion(answers(app, request.streamed(false)).last())

    public suspend fun create(messages: List<Message>, settings: Settings = Settings()): Completion =
        create(Request.chat(messages, settings))

    /** The answer piece by piece; each collection is a request. As [create] in all else. */
    public fun stream(request: Request): Flow<Chunk> = answers(app, request.streamed(true)).map(::Chunk)

    public fun stream(messages: List<Message>, settings: Settings = Settings()): Flow<Chunk> =
        stream(Request.chat(messages, settings))
}

/** Text completions: a text in, what follows it out. As [ChatCompletions]. */
public class Completions internal constructor(private val app: App) {
    public suspend fun create(request: Request): Completion =
        Completion(answers(app, request.streamed(false)).last())

    public suspend fun create(prompt: String, settings: Settings = Settings()): Completion =
        create(Request.text(prompt, settings))

    public fun stream(request: Request): Flow<Chunk> = answers(app, request.streamed(true)).map(::Chunk)

    public fun stream(prompt: String, settings: Settings = Settings()): Flow<Chunk> =
        stream(Request.text(prompt, settings))
}

/** `engine.chat.completions`, as in OpenAI's own clients. */
public class Chat internal constructor(app: App) {
    public val completions: ChatCompletions = ChatCompletions(app)
}

/**
 * A model that answers, in this process. Any thread may use it; requests run together.
 *
 *     val engine = MLCEngine.load(File(filesDir, "models/demo"))
 *     engine.chat.completions.stream(listOf(Message.user("Hello!"))).collect { print(it.text) }
 *     engine.close()
 */
public class MLCEngine private constructor(private val app: App) : AutoCloseable {
    public val chat: Chat = Chat(app)
    public val completions: Completions = Completions(app)

    public fun stats(): EngineStats =
        EngineStats(Json.parseToJsonElement(app.stats().decodeToString()).jsonObject)

    /** The system is short of memory: what is kept of earlier conversations is given up. */
    public fun trim(): Unit = app.trim()

    /** Aborts what runs and frees the model. An engine that is not closed keeps its memory. */
    override fun close(): Unit = app.close()

    public companion object {
        /**
         * Load a folder that `wherry package` has written, off the caller's thread.
         *
         * Cancelling the coroutine ends the load at its next report.
         *
         * @param onProgress called on the thread that loads
         * @throws NotEnoughMemoryException the device has less memory than the model needs
         * @throws WherryException what is wrong with the folder or the options
         */
        public suspend fun load(
            folder: File,
            options: EngineOptions = EngineOptions(),
            onProgress: (LoadProgress) -> Unit = {},
        ): MLCEngine {
            var loaded: MLCEngine? = null
            try {
                withContext(Dispatchers.IO) {
                    if (options.checkMemory) requireMemory(folder, options.json)
                    val here = currentCoroutineContext()
                    loaded = open(folder, options) { phase, done, total ->
                        onProgress(LoadProgress(phase.decodeToString(), done, total))
                        here.isActive
                    }
                }
                return checkNotNull(loaded)
            } catch (e: CancellationException) {
                loaded?.close() // it was complete when the coroutine was cancelled
                throw e
            }
        }

        private fun open(folder: File, options: EngineOptions, listener: LoadListener): MLCEngine {
            val path = folder.absolutePath.encodeToByteArray()
            val json = options.json.toString().encodeToByteArray()
            return try {
                MLCEngine(App(Native.open(path, json, listener)))
            } catch (e: LoadCancelled) {
                throw CancellationException("The load was cancelled.", e)
            }
        }
    }
}
