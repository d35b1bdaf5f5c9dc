package dev.wherry

import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.util.Base64
import kotlinx.coroutines.flow.last
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.contentOrNull
import kotlinx.serialization.json.doubleOrNull
import kotlinx.serialization.json.floatOrNull

/**
 * Fields of requests for embeddings, rankings and classes, under the server's names.
 *
 * @param truncate whether texts that are too long are cut; otherwise they are errors
 * @param dimensions number of an embedding's leading dimensions that are returned; null: all
 * @param promptName name of the model's prompt that precedes texts which are embedded
 * @param topN maximum number of documents in a ranking; null: all
 * @param instruction what a reranker that reads a prompt judges by
 * @param more any other fields of the request
 */
public class VectorSettings @JvmOverloads constructor(
    truncate: Boolean? = null,
    dimensions: Int? = null,
    promptName: String? = null,
    topN: Int? = null,
    instruction: String? = null,
    more: Map<String, JsonElement> = emptyMap(),
) {
    internal val json: Map<String, JsonElement> = buildMap {
        truncate?.let { put("truncate", JsonPrimitive(it)) }
        dimensions?.let { put("dimensions", JsonPrimitive(it)) }
        promptName?.let { put("prompt_name", JsonPrimitive(it)) }
        topN?.let { put("top_n", JsonPrimitive(it)) }
        instruction?.let { put("instruction", JsonPrimitive(it)) }
        putAll(more)
    }
}

/** Embeddings of texts. [json] has all fields of OpenAI's object. */
public class Embeddings internal constructor(public val json: JsonObject) {
    /** The vector of each text, in the order of the texts. */
    public val vectors: List<FloatArray> get() = json.list("data").map { floats(it["embedding"]) }
    public val usage: Usage? get() = json.obj("usage")?.let(::Usage)

    override fun toString(): String = json.toString()
}

/**
 * A document in a ranking.
 *
 * @property index the document's place in the request
 * @property score how well it matches the query: the higher, the better
 * @property text the document; null: the request asked to leave it out
 */
public class RankedDocument internal constructor(
    public val index: Int,
    public val score: Double,
    public val text: String?,
)

/** Documents by how well they match a query, the best first. [json] has all fields. */
public class Ranking internal constructor(public val json: JsonObject) {
    public val results: List<RankedDocument>
        get() = json.list("results").map {
            RankedDocument(
                it.int("index") ?: 0,
                it.double("relevance_score") ?: 0.0,
                it.obj("document")?.string("text"),
            )
        }
    public val usage: Usage? get() = json.obj("usage")?.let(::Usage)

    override fun toString(): String = json.toString()
}

/**
 * The class of a text.
 *
 * @property label name of the most probable class
 * @property probabilities of all classes, in the order of the model's labels
 */
public class ClassifiedText internal constructor(
    public val label: String,
    public val probabilities: List<Double>,
)

/** The classes of texts. [json] has all fields. */
public class Classification internal constructor(public val json: JsonObject) {
    /** The class of each text, in the order of the texts. */
    public val results: List<ClassifiedText>
        get() = json.list("data").map {
            ClassifiedText(it.string("label").orEmpty(), numbers(it["probs"]).mapNotNull { p -> p.doubleOrNull })
        }
    public val usage: Usage? get() = json.obj("usage")?.let(::Usage)

    override fun toString(): String = json.toString()
}

/** A request for numbers, whose answer is one object. */
internal suspend fun numbersOf(app: App, task: String, request: Request): JsonObject =
    answers(app, JsonObject(mapOf("task" to JsonPrimitive(task)) + request.json)).last()

internal fun embeddingRequest(texts: List<String>, settings: VectorSettings): Request =
    // A vector in base64 is a third of its numbers as text.
    Request(JsonObject(mapOf("encoding_format" to JsonPrimitive("base64")) + settings.json + ("input" to array(texts))))

internal fun rankingRequest(query: String, documents: List<String>, settings: VectorSettings): Request =
    Request(JsonObject(settings.json + ("query" to JsonPrimitive(query)) + ("documents" to array(documents))))

internal fun classRequest(texts: List<String>, settings: VectorSettings): Request =
    Request(JsonObject(settings.json + ("input" to array(texts))))

private fun array(texts: List<String>) = JsonArray(texts.map(::JsonPrimitive))

private fun numbers(element: JsonElement?): List<JsonPrimitive> =
    (element as? JsonArray).orEmpty().filterIsInstance<JsonPrimitive>()

private fun floats(element: JsonElement?): FloatArray {
    if (element is JsonArray) return numbers(element).mapNotNull { it.floatOrNull }.toFloatArray()
    val bytes = Base64.getDecoder().decode((element as? JsonPrimitive)?.contentOrNull.orEmpty())
    val numbers = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer()
    return FloatArray(numbers.remaining()).also(numbers::get)
}
