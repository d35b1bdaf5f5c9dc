/**
 * What tests/mobile/test_kotlin.py asks of the library: `Checks FOLDER OPTIONS CASE...`, each CASE
 * a function below. Prints one JSON object, {"CASE": what it found}.
 */
import dev.wherry.EngineClosedException
import dev.wherry.EngineOptions
import dev.wherry.InvalidArgumentException
import dev.wherry.MLCEngine
import dev.wherry.Message
import dev.wherry.ModelNotFoundException
import dev.wherry.NotEnoughMemoryException
import dev.wherry.Request
import dev.wherry.RequestException
import dev.wherry.Settings
import java.io.File
import kotlin.system.exitProcess
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.collect
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.fold
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.jsonObject

private val NEW = Settings(maxTokens = 24, temperature = 0.0)

/** As one prompt differs from another: numbers of tokens, which the stand-in reads as such. */
private fun prompt(i: Int) = (0 until 8).joinToString(" ") { "${3 + (7 * i + 3 * it) % 400}" }

private class Checks(val folder: File, val options: EngineOptions) {
    suspend fun load(settings: EngineOptions = options) = MLCEngine.load(folder, settings)

    /** Greedy answers of both protocols, whole and in pieces. */
    suspend fun answers(): JsonElement = load().use { engine ->
        val prompt = prompt(0)
        val chat = listOf(Message.user(prompt))
        val pieces = engine.completions.stream(prompt, NEW).toList()
        val found = mapOf(
            "text" to engine.completions.create(prompt, NEW).text,
            "streamed" to pieces.joinToString("") { it.text },
            "pieces" to pieces.size,
            "finish" to pieces.last().finishReason,
            "chat" to engine.chat.completions.create(chat, NEW).text,
            "chat_streamed" to engine.chat.completions.stream(chat, NEW).fold("") { t, c -> t + c.text },
        )
        JsonObject(found.mapValues { (_, value) -> JsonPrimitive(value.toString()) })
    }

    /** 16 coroutines at once, on as many threads as there are, and each alone. */
    suspend fun together(): JsonElement = load().use { engine ->
        val alone = (0 until 16).map { engine.completions.create(prompt(it), NEW).text }
        val together = runBlocking(Dispatchers.Default) {
            (0 until 16).map { async { engine.completions.create(prompt(it), NEW).text } }.awaitAll()
        }
        JsonArray(listOf(alone, together).map { JsonArray(it.map(::JsonPrimitive)) })
    }

    /** Pages that are free before, while, and after requests that are cancelled in three ways. */
    suspend fun cancelling(): JsonElement = load().use { engine ->
        val long = Settings(maxTokens = 400, temperature = 0.0)
        val before = engine.stats().pagesFree
        val least = mutableListOf<Long>()
        runBlocking(Dispatchers.Default) {
            val jobs = (0 until 3).map { i ->
                launch { engine.completions.stream(prompt(i), long).collect { least += engine.stats().pagesFree } }
            } + launch { engine.completions.create(prompt(7), long) }
            delay(200)
            jobs.forEach { it.cancelAndJoin() }
        }
        engine.completions.stream(prompt(9), long).first() // ends the flow after a chunk
        val failed = runCatching { engine.completions.stream(prompt(9), long).collect { error("own") } }
        withTimeout(20_000) {
            while (engine.stats().pagesFree != before) delay(10)
        }
        JsonObject(
            mapOf(
                "before" to JsonPrimitive(before),
                "least" to JsonPrimitive(least.min()),
                "after" to JsonPrimitive(engine.stats().pagesFree),
                "own" to JsonPrimitive(failed.exceptionOrNull()?.message),
            ),
        )
    }

    /** What is thrown where, by name of the class. */
    suspend fun errors(): JsonElement {
        suspend fun thrown(what: suspend () -> Unit): JsonPrimitive = try {
            what()
            JsonPrimitive("nothing")
        } catch (e: Exception) {
            JsonPrimitive("${e::class.simpleName}: ${e.message}")
        }
        val engine = load()
        val found = mutableMapOf(
            "no_folder" to thrown { MLCEngine.load(File("/none"), options).close() },
            "no_memory" to thrown { load(EngineOptions(context = Int.MAX_VALUE)).close() },
            "bad_json" to thrown { Request.of("[1]") },
            "refused" to thrown { engine.completions.create("", NEW) },
            "cancelled" to thrown {
                runBlocking {
                    val job = async(Dispatchers.Default) { MLCEngine.load(folder, options) { throw CancellationException("own") } }
                    job.await().close()
                }
            },
            "own" to thrown { MLCEngine.load(folder, options) { error("own") }.close() },
        )
        runBlocking(Dispatchers.Default) {
            val running = async { thrown { engine.completions.create(prompt(1), Settings(maxTokens = 400)) } }
            while (engine.stats().json["pages_free"] == engine.stats().json["pages_total"]) delay(5)
            engine.close()
            found["closed_while"] = running.await()
        }
        engine.close()
        found["closed"] = thrown { engine.completions.create(prompt(1), NEW) }
        found["closed_stats"] = thrown { engine.stats() }
        return JsonObject(found)
    }

    /** Closed by who collects on the engine's own thread, where nothing may wait. */
    suspend fun closing(): JsonElement {
        val engine = load()
        val long = Settings(maxTokens = 400, temperature = 0.0)
        val ended = runBlocking(Dispatchers.Unconfined) {
            runCatching { engine.completions.stream(prompt(2), long).collect { engine.close() } }
        }
        return JsonPrimitive(ended.exceptionOrNull()?.let { it::class.simpleName })
    }

    /** Load and unload, with a request each; what the process has after the first tenth and then. */
    suspend fun leaks(rounds: Int): JsonElement {
        val sizes = mutableListOf<JsonElement>()
        for (round in 0 until rounds) {
            load().use { engine ->
                engine.completions.stream(prompt(round), Settings(maxTokens = 2)).collect()
            }
            if ((round + 1) % (rounds / 10) == 0) {
                System.gc()
                val status = File("/proc/self/status").readLines()
                fun field(name: String) = status.first { it.startsWith("$name:") }.filter(Char::isDigit)
                val files = File("/proc/self/fd").list()?.size ?: 0
                val now = listOf(field("VmRSS"), field("Threads"), "$files")
                sizes.add(JsonArray(now.map { JsonPrimitive(it.toLong()) }))
            }
        }
        return JsonArray(sizes)
    }

    suspend fun run(case: String): JsonElement = when (case.substringBefore(":")) {
        "answers" -> answers()
        "together" -> together()
        "cancelling" -> cancelling()
        "errors" -> errors()
        "closing" -> closing()
        "leaks" -> leaks(case.substringAfter(":").toInt())
        "java" -> Json.parseToJsonElement(JavaChecks.run(folder, options, prompt(0), NEW))
        else -> JsonNull
    }
}

fun main(arguments: Array<String>) {
    val more = Json.parseToJsonElement(arguments[1]).jsonObject
    val checks = Checks(File(arguments[0]), EngineOptions(more = more))
    val found = runBlocking { arguments.drop(2).associateWith { checks.run(it) } }
    println(JsonObject(found))
    exitProcess(0)
}
