package dev.wherry

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.withContext
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.contentOrNull
import kotlinx.serialization.json.doubleOrNull
import kotlinx.serialization.json.intOrNull
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.longOrNull

/** Token counts of a request. */
public class Usage internal constructor(public val json: JsonObject) {
    public val promptTokens: Int get() = json.int("prompt_tokens") ?: 0
    public val completionTokens: Int get() = json.int("completion_tokens") ?: 0
    public val totalTokens: Int get() = json.int("total_tokens") ?: 0
}

/** Times of a request. [json] has all of them, under the names of llama.cpp's server. */
public class Timings internal constructor(public val json: JsonObject) {
    /** Tokens of the prompt that were computed, and not found in the cache, per second. */
    public val promptPerSecond: Double get() = json.double("prompt_per_second") ?: 0.0

    /** Tokens of the output per second. */
    public val outputPerSecond: Double get() = json.double("predicted_per_second") ?: 0.0
}

/**
 * The log probability of a token.
 *
 * @property token text of the token; its bytes need not be a whole character
 * @property top the most likely tokens in its place, as many as `top_logprobs`
 */
public class TokenLogprob internal constructor(
    public val token: String,
    public val logprob: Double,
    public val top: List<TokenLogprob>,
)

private fun logprobsOf(choice: JsonObject?): List<TokenLogprob> =
    choice?.obj("logprobs")?.list("content").orEmpty().map(::logprob)

private fun logprob(json: JsonObject): TokenLogprob =
    TokenLogprob(json.string("token").orEmpty(), json.double("logprob") ?: 0.0, json.list("top_logprobs").map(::logprob))

/** A chat completion or a text completion. [json] has all fields of OpenAI's object. */
public class Completion internal constructor(public val json: JsonObject) {
    /** Text of the first choice: the content of its message, or its completion. */
    public val text: String
        get() = choice?.obj("message")?.string("content") ?: choice?.string("text") ?: ""

    /** Why the first choice ended: "stop", "length" or "tool_calls". */
    public val finishReason: String? get() = choice?.string("finish_reason")

    /** Tool calls of the first choice, as OpenAI's objects. */
    public val toolCalls: List<JsonObject> get() = choice?.obj("message")?.list("tool_calls").orEmpty()
    public val usage: Usage? get() = json.obj("usage")?.let(::Usage)

    /** Reasoning of the first choice, which the model wrote before its text. */
    public val reasoning: String get() = choice?.obj("message")?.string("reasoning_content") ?: ""

    /** Log probabilities of the first choice's tokens; empty: the request has not asked for them. */
    public val logprobs: List<TokenLogprob> get() = logprobsOf(choice)

    /** Times of the request, with which apps show tokens per second. */
    public val timings: Timings? get() = json.obj("timings")?.let(::Timings)

    /** Number of messages that `truncation` has left out. */
    public val droppedMessages: Int get() = json.int("dropped_messages") ?: 0
    private val choice get() = json.list("choices").firstOrNull()

    override fun toString(): String = json.toString()
}

/** A chunk of a streamed completion. [json] has all fields of OpenAI's object. */
public class Chunk internal constructor(public val json: JsonObject) {
    /**
     * Text that the chunk adds to the first choice; often empty in the first and the last chunk.
     */
    public val text: String
        get() = choice?.obj("delta")?.string("content") ?: choice?.string("text") ?: ""

    /** Why the first choice ended; only in its last chunk. */
    public val finishReason: String? get() = choice?.string("finish_reason")

    /** Pieces of tool calls that the chunk adds to the first choice. */
    public val toolCalls: List<JsonObject> get() = choice?.obj("delta")?.list("tool_calls").orEmpty()

    /** Token counts, in the last chunk of a request that asked for them. */
    public val usage: Usage? get() = json.obj("usage")?.let(::Usage)

    /** Reasoning that the chunk adds to the first choice. */
    public val reasoning: String get() = choice?.obj("delta")?.string("reasoning_content") ?: ""

    /** Log probabilities of the tokens that the chunk adds to the first choice. */
    public val logprobs: List<TokenLogprob> get() = logprobsOf(choice)

    /** Times of the request, in the chunk that has its [usage]. */
    public val timings: Timings? get() = json.obj("timings")?.let(::Timings)

    /** Number of messages that `truncation` has left out, in the first chunk. */
    public val droppedMessages: Int get() = json.int("dropped_messages") ?: 0
    private val choice get() = json.list("choices").firstOrNull()

    override fun toString(): String = json.toString()
}

/**
 * The engine's answers to a request, from the first object to the last.
 *
 * A collector that stops, by cancellation or by an exception, aborts the request. Answers that a
 * slow collector has not taken yet are queued; there are at most as many as tokens.
 */
internal fun answers(app: App, request: JsonObject): Flow<JsonObject> = flow {
    val chunks = Channel<ByteArray>(Channel.UNLIMITED)
    val bytes = utf8(request)
    // Not cancellable, because a request whose id is lost could not be aborted.
    val id = withContext(NonCancellable + Dispatchers.Default) {
        app.start(bytes) { json, last ->
            if (json.isNotEmpty()) chunks.trySend(json)
            if (last) chunks.close()
        }
    }
    var ended = false
    try {
        for (chunk in chunks) emit(read(app, chunk))
        ended = true
    } finally {
        if (!ended) app.abort(id)
    }
}

/**
 * Converts JSON to UTF-8. UTF-8 cannot express half of a surrogate pair, for which Java would write
 * "?"; it is written as an escape, so that the engine's error names the field with the damaged
 * text.
 */
private fun utf8(json: JsonObject): ByteArray {
    val text = json.toString()
    val escaped = StringBuilder(text.length)
    var at = 0
    while (at < text.length) {
        val unit = text[at++]
        val paired = unit.isHighSurrogate() && at < text.length && text[at].isLowSurrogate()
        when {
            paired -> escaped.append(unit).append(text[at++])
            unit.isSurrogate() -> escaped.append("\\u").append(unit.code.toString(HEXADECIMAL))
            else -> escaped.append(unit)
        }
    }
    return escaped.toString().encodeToByteArray()
}

private const val HEXADECIMAL = 16

private fun read(app: App, bytes: ByteArray): JsonObject {
    val json = Json.parseToJsonElement(bytes.decodeToString()).jsonObject
    val error = json.obj("error") ?: return json
    // Only this collector aborts its request, unless the engine was closed.
    if (error.string("code") == "aborted" && app.isClosed) throw EngineClosedException()
    throw RequestException(
        error.string("message") ?: error.toString(),
        error.string("type"),
        error.string("param"),
        error.string("code"),
    )
}

private fun primitive(element: JsonElement?): JsonPrimitive? = element as? JsonPrimitive

internal fun JsonObject.string(name: String): String? = primitive(this[name])?.contentOrNull

internal fun JsonObject.int(name: String): Int? = primitive(this[name])?.intOrNull

internal fun JsonObject.double(name: String): Double? = primitive(this[name])?.doubleOrNull

internal fun JsonObject.long(name: String): Long? = primitive(this[name])?.longOrNull

internal fun JsonObject.obj(name: String): JsonObject? = this[name] as? JsonObject

internal fun JsonObject.list(name: String): List<JsonObject> =
    (this[name] as? JsonArray).orEmpty().filterIsInstance<JsonObject>()
