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
import kotlinx.serialization.json.intOrNull
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.longOrNull

/** Tokens that a request took. */
public class Usage internal constructor(public val json: JsonObject) {
    public val promptTokens: Int get() = json.int("prompt_tokens") ?: 0
    public val completionTokens: Int get() = json.int("completion_tokens") ?: 0
    public val totalTokens: Int get() = json.int("total_tokens") ?: 0
}

/** A chat completion, or a text completion. [json] has all that OpenAI's object has. */
public class Completion internal constructor(public val json: JsonObject) {
    /** The content of the first choice's message, or its text. */
    public val text: String
        get() = choice?.obj("message")?.string("content") ?: choice?.string("text") ?: ""

    /** "stop", "length" or "tool_calls", of the first choice. */
    public val finishReason: String? get() = choice?.string("finish_reason")

    /** Calls of tools that the first choice asks for, as OpenAI writes them. */
    public val toolCalls: List<JsonObject> get() = choice?.obj("message")?.list("tool_calls").orEmpty()
    public val usage: Usage? get() = json.obj("usage")?.let(::Usage)
    private val choice get() = json.list("choices").firstOrNull()

    override fun toString(): String = json.toString()
}

/** A piece of a completion that is being written. [json] has all that OpenAI's object has. */
public class Chunk internal constructor(public val json: JsonObject) {
    /** What the first choice grows by; often empty in the first and in the last chunk. */
    public val text: String
        get() = choice?.obj("delta")?.string("content") ?: choice?.string("text") ?: ""

    /** Of the first choice, in its last chunk. */
    public val finishReason: String? get() = choice?.string("finish_reason")

    /** Calls of tools that the first choice grows by. */
    public val toolCalls: List<JsonObject> get() = choice?.obj("delta")?.list("tool_calls").orEmpty()

    /** In the last chunk of a request that asked for it. */
    public val usage: Usage? get() = json.obj("usage")?.let(::Usage)
    private val choice get() = json.list("choices").firstOrNull()

    override fun toString(): String = json.toString()
}

/**
 * What the engine says to a request, from its first object to its last.
 *
 * A collector that stops, by cancellation or by an exception, aborts the request. What a slow
 * collector has not taken yet waits; it is no more than the request's tokens.
 */
internal fun answers(app: App, request: JsonObject): Flow<JsonObject> = flow {
    val chunks = Channel<ByteArray>(Channel.UNLIMITED)
    val bytes = utf8(request)
    // Not cancellable: a request whose number gets lost could not be aborted.
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
 * JSON as bytes. Half of a surrogate pair has none in UTF-8, and Java would send "?" for it: it goes
 * escaped, so that the engine says in which field a text was cut.
 */
private fun utf8(json: JsonObject): ByteArray {
    val text = json.toString()
    val made = StringBuilder(text.length)
    var at = 0
    while (at < text.length) {
        val unit = text[at++]
        val paired = unit.isHighSurrogate() && at < text.length && text[at].isLowSurrogate()
        when {
            paired -> made.append(unit).append(text[at++])
            unit.isSurrogate() -> made.append("\\u").append(unit.code.toString(HEXADECIMAL))
            else -> made.append(unit)
        }
    }
    return made.toString().encodeToByteArray()
}

private const val HEXADECIMAL = 16

private fun read(app: App, bytes: ByteArray): JsonObject {
    val json = Json.parseToJsonElement(bytes.decodeToString()).jsonObject
    val error = json.obj("error") ?: return json
    // Only this collector aborts a request that it listens to.
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

internal fun JsonObject.long(name: String): Long? = primitive(this[name])?.longOrNull

internal fun JsonObject.obj(name: String): JsonObject? = this[name] as? JsonObject

internal fun JsonObject.list(name: String): List<JsonObject> =
    (this[name] as? JsonArray).orEmpty().filterIsInstance<JsonObject>()
