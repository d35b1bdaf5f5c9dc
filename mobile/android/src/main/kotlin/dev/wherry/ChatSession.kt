package dev.wherry

import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.last
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.serialization.KSerializer
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.serializer

/**
 * A conversation: it keeps the messages, leaves out the oldest turns when the context is full, and
 * calls tools.
 *
 *     val session = ChatSession(engine, "Answer in one sentence.", listOf(weather))
 *     session.stream("Do I need an umbrella in Oslo?").collect { print(it.text) }
 *
 * One turn runs at a time; further ones wait. A turn that is cancelled keeps the text so far; one
 * that fails leaves the conversation as it was.
 *
 * @param system an instruction, which is always sent
 * @param tools functions that the model may call; its calls are answered within the turn
 * @param settings settings of each turn; their tools are called by the app
 * @param messages earlier messages without the system's, as [messages] returned them
 * @param maxToolRounds number of times that a turn may call tools; then the model must answer
 */
public class ChatSession @JvmOverloads constructor(
    private val engine: MLCEngine,
    private val system: String? = null,
    tools: List<Tool> = emptyList(),
    private val settings: Settings = Settings(),
    messages: List<Message> = emptyList(),
    private val maxToolRounds: Int = 8,
) {
    private val turn = Mutex()
    private val tools = tools.associateBy { it.name }
    private val turns = messages.toMutableList()

    init {
        if (this.tools.size != tools.size) {
            throw InvalidArgumentException("Two tools have one name: ${tools.map { it.name }}")
        }
    }

    /** The messages so far, also those that the context has no room for, without the system's. */
    public val messages: List<Message> get() = synchronized(turns) { turns.toList() }

    /** Number of messages that the last turn left out, because the context is full. */
    @Volatile
    public var droppedMessages: Int = 0
        private set

    /**
     * Returns the whole answer to a message, with [images] as in [Message.user].
     *
     * @throws RequestException the request was refused or has failed, as for a message that exceeds
     *     the context
     */
    @JvmOverloads
    public suspend fun send(text: String, images: List<ByteArray> = emptyList()): Completion {
        var answer: Completion? = null
        converse(Message.user(text, images)) { request, written ->
            answer = Completion(engine.answers(request, false).last()).also(written::take)
        }
        return checkNotNull(answer)
    }

    /** Returns the answer to a message as a value of a class, as [ChatCompletions.parse] does. */
    public suspend inline fun <reified T> parse(text: String): T = parse(serializer<T>(), text)

    /** Returns the answer to a message as a value that [serializer] reads. */
    public suspend fun <T> parse(serializer: KSerializer<T>, text: String): T {
        var answer: Completion? = null
        converse(Message.user(text)) { request, written ->
            val typed = constrained(request, serializer.descriptor)
            answer = Completion(engine.answers(typed, false).last()).also(written::take)
        }
        return decoded(serializer, checkNotNull(answer).text)
    }

    /**
     * Returns the answer to a message in chunks, with those of tool calls; each collection of the
     * flow is a new turn. [images]: as in [Message.user].
     */
    @JvmOverloads
    public fun stream(text: String, images: List<ByteArray> = emptyList()): Flow<Chunk> = flow {
        converse(Message.user(text, images)) { request, written ->
            engine.answers(request, true).map(::Chunk).collect {
                written.take(it)
                emit(it)
            }
        }
    }

    /**
     * Removes the user's last message and what followed it.
     *
     * @return the message; null: there is none
     */
    public suspend fun undo(): Message? = turn.withLock {
        synchronized(turns) {
            val at = turns.indexOfLast { it.role == "user" }
            if (at < 0) return null
            turns[at].also { turns.subList(at, turns.size).clear() }
        }
    }

    /**
     * Computes the system message, the tools and the messages so far, so that the next turn begins
     * sooner.
     */
    public suspend fun prewarm(): Unit = turn.withLock {
        val next = request(messages + Message.user(""), mayCall = true)
        engine.answers(JsonObject(next + ("max_tokens" to JsonPrimitive(1))), false).last()
    }

    /** Runs a turn; [ask] sends a request, and records what the model has written. */
    private suspend fun converse(question: Message, ask: suspend (JsonObject, Written) -> Unit): Unit = turn.withLock {
        val before = messages.size
        add(question)
        var written = Written()
        try {
            for (round in 0..maxToolRounds) {
                written = Written()
                ask(request(messages, mayCall = round < maxToolRounds), written)
                droppedMessages = written.dropped
                val results = written.calls.mapNotNull { call ->
                    tools[call.name]?.let { Message.tool(call.id, it.called(call.arguments)) }
                }
                add(written.message(), *results.toTypedArray())
                if (results.isEmpty()) break
            }
        } catch (e: Throwable) {
            val kept = e is CancellationException && written.text.isNotEmpty() && written.calls.isEmpty()
            if (kept) add(written.message()) else synchronized(turns) { turns.subList(before, turns.size).clear() }
            throw e
        }
    }

    private fun request(messages: List<Message>, mayCall: Boolean): JsonObject {
        val opening = system?.let { listOf(Message.system(it)) }.orEmpty()
        val fields = settings.json.toMutableMap()
        val offered = (fields["tools"] as? JsonArray).orEmpty() + tools.values.map { it.json }
        if (offered.isNotEmpty()) fields["tools"] = JsonArray(offered)
        if (offered.isNotEmpty() && !mayCall) fields["tool_choice"] = ToolChoice.NONE.json
        fields.putIfAbsent("truncation", JsonPrimitive("auto"))
        fields["messages"] = JsonArray((opening + messages).map(Message::json))
        return JsonObject(fields)
    }

    private fun add(vararg messages: Message) {
        synchronized(turns) { turns += messages }
    }
}

/** A whole call of a function, as the model wrote it. */
internal class Call(val id: String, val name: String, val arguments: String) {
    val json: JsonObject = buildJsonObject {
        put("id", JsonPrimitive(id))
        put("type", JsonPrimitive("function"))
        put("function", JsonObject(mapOf("name" to JsonPrimitive(name), "arguments" to JsonPrimitive(arguments))))
    }
}

/** What the model has written in a response, from its chunks or as a whole. */
internal class Written {
    val text = StringBuilder()
    var dropped = 0
        private set
    private val pieces = sortedMapOf<Int, MutableList<JsonObject>>()

    fun take(chunk: Chunk) {
        text.append(chunk.text)
        dropped = chunk.json.int("dropped_messages") ?: dropped
        chunk.toolCalls.forEach { pieces.getOrPut(it.int("index") ?: 0) { mutableListOf() } += it }
    }

    fun take(completion: Completion) {
        text.append(completion.text)
        dropped = completion.json.int("dropped_messages") ?: 0
        completion.toolCalls.forEachIndexed { i, call -> pieces[i] = mutableListOf(call) }
    }

    val calls: List<Call>
        get() = pieces.values.map { of ->
            val functions = of.mapNotNull { it.obj("function") }
            Call(
                of.firstNotNullOfOrNull { it.string("id") }.orEmpty(),
                functions.firstNotNullOfOrNull { it.string("name") }.orEmpty(),
                functions.joinToString("") { it.string("arguments").orEmpty() },
            )
        }

    fun message(): Message {
        val calls = calls
        if (calls.isEmpty()) return Message.assistant(text.toString())
        return Message(
            buildJsonObject {
                put("role", JsonPrimitive("assistant"))
                put("content", if (text.isEmpty()) JsonNull else JsonPrimitive(text.toString()))
                put("tool_calls", JsonArray(calls.map { it.json }))
            },
        )
    }
}
