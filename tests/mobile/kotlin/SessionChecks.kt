/** What tests/mobile/test_sessions.py asks of conversations: `SessionChecksKt FOLDER OPTIONS CASE...`. */
import dev.wherry.ChatSession
import dev.wherry.EngineOptions
import dev.wherry.MLCEngine
import dev.wherry.Message
import dev.wherry.RequestException
import dev.wherry.Settings
import dev.wherry.Tool
import dev.wherry.ToolChoice
import java.io.File
import kotlin.system.exitProcess
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.jsonObject

private const val STORY_PROMPT = "Tell me a story about a fox."
private const val BRIEF = "You tell stories."
private val NEW = Settings(maxTokens = 12, temperature = 0.0)

private class SessionChecks(val engine: MLCEngine) {
    private fun json(vararg fields: Pair<String, Any?>) = JsonObject(fields.associate { (k, v) -> k to element(v) })

    private fun element(value: Any?): JsonElement = when (value) {
        is JsonElement -> value
        is Number -> JsonPrimitive(value)
        is Boolean -> JsonPrimitive(value)
        is List<*> -> JsonArray(value.map(::element))
        is Message -> value.json
        else -> JsonPrimitive(value?.toString())
    }

    /** Two turns, whole and streamed, and the same after a part was taken back. */
    suspend fun turns(): JsonElement {
        val session = ChatSession(engine, BRIEF, settings = NEW)
        val first = session.send(STORY_PROMPT)
        val streamed = session.stream("And a bear?").toList().joinToString("") { it.text }
        val said = session.messages
        val undone = session.undo()
        val restored = ChatSession(engine, BRIEF, settings = NEW, messages = session.messages)
        val again = restored.send("And a bear?")
        return json(
            "first" to first.text, "streamed" to streamed, "said" to said, "undone" to undone,
            "again" to again.text, "left" to session.messages.size, "rate" to (again.timings!!.outputPerSecond > 0),
        )
    }

    /** More turns than the context has room for. */
    suspend fun outgrown(): JsonElement {
        val session = ChatSession(engine, BRIEF, settings = NEW)
        val dropped = (0 until 7).map { i ->
            session.send("$i times a fox met a bear in the wood. ".repeat(8))
            session.droppedMessages
        }
        val last = session.messages.last().json
        return json("dropped" to dropped, "kept" to session.messages, "last" to last)
    }

    /** What a message that cannot be sent, and a reader who stops, leave behind. */
    suspend fun stopped(): JsonElement {
        val session = ChatSession(engine, settings = NEW)
        session.send(STORY_PROMPT)
        val refused = try {
            session.send("a fox ".repeat(4000))
            null
        } catch (e: RequestException) {
            e.code
        }
        val after = session.messages.size
        val seen = session.stream("More.").take(4).toList().joinToString("") { it.text }
        return json("refused" to refused, "after" to after, "seen" to seen, "said" to session.messages)
    }

    /** A tool that must be called in the first round; then the model must answer. */
    suspend fun tools(): JsonElement {
        val given = mutableListOf<JsonElement>()
        val schema = """{"type": "object", "properties": {"city": {"const": "Oslo"}}, "required": ["city"],
            "additionalProperties": false}"""
        val weather = Tool("weather", "The weather of a city", Json.parseToJsonElement(schema).jsonObject) {
            given += it
            "rain"
        }
        val broken = Tool("broken", "Fails") { error("no network") }
        val turns = listOf(weather, broken).map { tool ->
            val settings = Settings(60, 0.0, toolChoice = ToolChoice.function(tool.name))
            val session = ChatSession(engine, tools = listOf(weather, broken), settings = settings, maxToolRounds = 1)
            val last = session.send("Do I need an umbrella?")
            listOf(session.messages, last.finishReason)
        }
        return json("given" to given, "weather" to turns[0], "broken" to turns[1])
    }

    /** Cached tokens of a turn after its beginning was computed ahead. */
    suspend fun prewarmed(): JsonElement {
        val session = ChatSession(engine, "You tell stories of a fox who meets a bear. ".repeat(8), settings = NEW)
        engine.trim()
        session.prewarm()
        val usage = session.send(STORY_PROMPT).usage!!.json
        return json("usage" to usage, "said" to session.messages.size)
    }

    suspend fun run(case: String): JsonElement = when (case) {
        "turns" -> turns()
        "outgrown" -> outgrown()
        "stopped" -> stopped()
        "tools" -> tools()
        else -> prewarmed()
    }
}

fun main(arguments: Array<String>) {
    val more = Json.parseToJsonElement(arguments[1]).jsonObject
    val results = runBlocking {
        val engine = MLCEngine.load(File(arguments[0]), EngineOptions(context = 512, more = more))
        val checks = SessionChecks(engine)
        arguments.drop(2).associateWith { checks.run(it) }.also { engine.shutdown() }
    }
    println(JsonObject(results))
    exitProcess(0)
}
