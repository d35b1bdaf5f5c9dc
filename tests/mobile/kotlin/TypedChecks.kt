/** Serializable classes of the tests: their schemas, answers of their types, and typed endpoints. */
import dev.wherry.InvalidArgumentException
import dev.wherry.MLCEngine
import dev.wherry.Message
import dev.wherry.RequestException
import dev.wherry.Settings
import dev.wherry.Tool
import dev.wherry.UnreadableAnswerException
import dev.wherry.VectorSettings
import dev.wherry.jsonSchema
import kotlinx.serialization.Contextual
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.encodeToString
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.serializer

@Serializable
enum class Colour {
    @SerialName("red")
    RED,

    @SerialName("blue")
    BLUE,
}

@Serializable
@JvmInline
value class Name(val text: String)

@Serializable
class Fox(val colour: Colour, val tails: Byte, val tame: Boolean)

@Serializable
class Forest(
    @SerialName("forest_name") val name: Name,
    val trees: Int,
    val foxes: List<Fox>,
    val ages: Map<String, Double?> = emptyMap(),
    val note: String? = null,
)

@Serializable
class Node(val value: Long, val next: Node? = null)

@Serializable
sealed class Shape

@Serializable
@SerialName("circle")
class Circle(val radius: Double) : Shape()

@Serializable
@SerialName("square")
class Square(val side: Float) : Shape()

@Serializable
class Secret(@Contextual val hidden: Any)

/** The schemas of all kinds of classes, and the error for one that has none. */
fun schemas(): JsonElement = JsonObject(
    mapOf(
        "forest" to jsonSchema(serializer<Forest>().descriptor),
        "node" to jsonSchema(serializer<Node>().descriptor),
        "shape" to jsonSchema(serializer<Shape>().descriptor),
        "none" to try {
            jsonSchema(serializer<Secret>().descriptor)
        } catch (e: InvalidArgumentException) {
            JsonPrimitive(e.message)
        },
    ),
)

/** A fox as the model writes it, one that is cut off, or the code where the library has no grammars. */
suspend fun typed(engine: MLCEngine): JsonElement {
    val messages = listOf(Message.user("Tell me of a fox."))
    val parsed = try {
        val fox = engine.chat.completions.parse<Fox>(messages, Settings(maxTokens = 64, temperature = 0.0))
        Json.encodeToString(fox)
    } catch (e: RequestException) {
        e.code
    }
    val cut = try {
        engine.chat.completions.parse<Fox>(messages, Settings(maxTokens = 2))
        "whole"
    } catch (e: UnreadableAnswerException) {
        e.message
    } catch (e: RequestException) {
        e.code
    }
    val tool = Tool.of<Fox>("pet", "Pets a fox") { "a ${it.colour} one" }
    val texts = listOf(parsed, cut, tool.parameters.toString()).map { JsonPrimitive(it) }
    return JsonArray(texts)
}

/** A text with and without a limit of threads, and the error of a wrong one. */
suspend fun limits(engine: MLCEngine): JsonElement {
    val settings = Settings(maxTokens = 24, temperature = 0.0)
    val free = engine.completions.create("Once upon a time", settings).text
    MLCEngine.limitThreads(1)
    val limited = engine.completions.create("Once upon a time", settings).text
    MLCEngine.limitThreads(0)
    val refused = try {
        MLCEngine.limitThreads(-1)
        "nothing"
    } catch (e: InvalidArgumentException) {
        e.message
    }
    return JsonArray(listOf(free, limited, refused).map { JsonPrimitive(it) })
}

/** What the typed functions make of answers that are numbers. */
suspend fun numbers(engine: MLCEngine): JsonElement {
    val texts = listOf("w7 w9 w11", "w20")
    val vectors = engine.embed(texts, VectorSettings(dimensions = 4)).vectors
    val plain = engine.embed(texts, VectorSettings(more = mapOf("encoding_format" to JsonPrimitive("float")))).vectors
    val ranking = engine.rerank("w7 w9", listOf("w20 w21", "w7 w9 w12"), VectorSettings(topN = 1))
    val rows = listOf(vectors[0], plain[0]).map { row -> JsonArray(row.map { JsonPrimitive(it) }) }
    val best = ranking.results.single()
    val hit = listOf(JsonPrimitive(best.index), JsonPrimitive(best.score), JsonPrimitive(best.text))
    val refused = try {
        engine.classify(texts)
        "nothing"
    } catch (e: RequestException) {
        e.code
    }
    return JsonArray(rows + hit + JsonPrimitive(refused))
}
