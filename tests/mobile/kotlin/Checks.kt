/**
 * What tests/mobile/test_kotlin.py asks of the library: `Checks FOLDER OPTIONS CASE...`, each CASE
 * a function below. Prints one JSON object, {"CASE": what it found}.
 */
import dev.wherry.ChatSession
import dev.wherry.EngineOptions
import dev.wherry.MLCEngine
import dev.wherry.Message
import dev.wherry.Request
import dev.wherry.RequestException
import dev.wherry.ResponseFormat
import dev.wherry.Settings
import dev.wherry.ToolChoice
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
import kotlinx.serialization.json.boolean
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive

private val NEW = Settings(maxTokens = 24, temperature = 0.0)
private val SHORT = Settings(maxTokens = 6, temperature = 0.0)
private const val STORY_PROMPT = "Tell me a story about a fox."
private const val BEGUN = "Once upon a time"

/** As one request differs from another; test_kotlin.py has the same. */
private fun sampled(i: Int) = Request.chat(
    listOf(Message.user("Number $i 🦊")),
    Settings(maxTokens = 16 + i, temperature = 0.7, seed = i.toLong()),
)

private class Checks(val folder: File, val more: JsonObject) {
    val options = EngineOptions(more = more)

    suspend fun load(settings: EngineOptions = options, from: File = folder) = MLCEngine.load(from, settings)

    /** A table of requests, [{"folder", "options", "requests"}]: all objects that each is answered with. */
    suspend fun table(file: String): JsonElement {
        val groups = Json.parseToJsonElement(File(file).readText()).jsonArray.map { it.jsonObject }
        return JsonArray(
            groups.map { group ->
                val folder = File(group.getValue("folder").jsonPrimitive.content)
                val own = EngineOptions(more = more + group.getValue("options").jsonObject)
                load(own, folder).use { engine ->
                    JsonArray(group.getValue("requests").jsonArray.map { answers(engine, it.jsonObject) })
                }
            },
        )
    }

    private suspend fun answers(engine: MLCEngine, request: JsonObject): JsonElement {
        val chat = "messages" in request
        val streamed = request["stream"]?.jsonPrimitive?.boolean ?: false
        val typed = Request.of(request.toString())
        val answers = mutableListOf<JsonElement>()
        try {
            if ("query" in request) {
                answers += engine.rerank(typed).json
            } else if ("task" in request) {
                answers += engine.classify(typed).json
            } else if ("input" in request) {
                answers += engine.embed(typed).json
            } else if (streamed) {
                val flow = if (chat) engine.chat.completions.stream(typed) else engine.completions.stream(typed)
                flow.collect { answers += it.json }
            } else {
                val answer = if (chat) engine.chat.completions.create(typed) else engine.completions.create(typed)
                answers += answer.json
            }
        } catch (e: RequestException) {
            val fields = mapOf("message" to e.message, "type" to e.type, "param" to e.param, "code" to e.code)
            answers += JsonObject(mapOf("error" to JsonObject(fields.mapValues { JsonPrimitive(it.value) })))
        }
        return JsonArray(answers)
    }

    /** Greedy answers of both protocols, whole and in pieces, as an app asks for them. */
    suspend fun answers(): JsonElement = load().use { engine ->
        val chat = listOf(Message.user(STORY_PROMPT))
        val pieces = engine.completions.stream(BEGUN, NEW).toList()
        val texts = mapOf(
            "text" to engine.completions.create(BEGUN, NEW).text,
            "streamed" to pieces.joinToString("") { it.text },
            "finish" to pieces.last().finishReason,
            "chat" to engine.chat.completions.create(chat, NEW).text,
            "chat_streamed" to engine.chat.completions.stream(chat, NEW).fold("") { t, c -> t + c.text },
        )
        JsonObject(texts.mapValues { (_, value) -> JsonPrimitive(value) })
    }

    /** Answers of a model that sees, to the files of its folder that are images, by a chat and by a session. */
    suspend fun images(from: String): JsonElement = load(from = File(from)).use { engine ->
        val files = File(from).listFiles().orEmpty().filter { it.name.startsWith("picture.") }
        val images = files.sorted().map { it.readBytes() }
        val question = Message.user("What is it?", images)
        val session = ChatSession(engine, settings = SHORT)
        val texts = listOf(
            engine.chat.completions.create(listOf(question), SHORT).text,
            session.send("What is it?", images).text,
            session.send("And now?").text,
            question.text,
        )
        JsonArray(texts.map(::JsonPrimitive))
    }

    /** 16 coroutines at once, on as many threads as there are, and each alone. */
    suspend fun together(): JsonElement = load().use { engine ->
        val alone = (0 until 16).map { engine.chat.completions.create(sampled(it)).text }
        val together = runBlocking(Dispatchers.Default) {
            (0 until 16).map { async { engine.chat.completions.create(sampled(it)).text } }.awaitAll()
        }
        JsonArray(listOf(alone, together).map { JsonArray(it.map(::JsonPrimitive)) })
    }

    /** Pages that are free before, while, and after requests that are cancelled in four ways. */
    suspend fun cancelling(): JsonElement = load().use { engine ->
        val before = engine.stats().pagesFree
        val least = mutableListOf<Long>()
        runBlocking(Dispatchers.Default) {
            val jobs = (0 until 3).map { i ->
                launch {
                    engine.completions.stream("$i $BEGUN", LONG).collect {
                        synchronized(least) { least += engine.stats().pagesFree }
                    }
                }
            } + launch { engine.completions.create(BEGUN, LONG) }
            while (synchronized(least) { least.size } < 12) delay(5)
            jobs.forEach { it.cancelAndJoin() }
        }
        engine.completions.stream(BEGUN, LONG).first() // ends the flow after a chunk
        val failed = runCatching { engine.completions.stream(BEGUN, LONG).collect { error("own") } }
        withTimeout(20_000) {
            while (engine.stats().pagesFree != before) delay(5)
        }
        engine.trim()
        JsonObject(
            mapOf(
                "before" to JsonPrimitive(before),
                "least" to JsonPrimitive(least.min()),
                "after" to JsonPrimitive(engine.stats().pagesFree),
                "cached" to engine.stats().json.getValue("pages_cached"),
                "own" to JsonPrimitive(failed.exceptionOrNull()?.message),
            ),
        )
    }

    /** What is thrown where, by name of the class. */
    suspend fun errors(damaged: String): JsonElement {
        suspend fun thrown(what: suspend () -> Unit): JsonPrimitive = try {
            what()
            JsonPrimitive("nothing")
        } catch (e: Exception) {
            JsonPrimitive("${e::class.simpleName}: ${e.message}")
        }
        val engine = load()
        val thrownBy = mutableMapOf(
            "no_folder" to thrown { MLCEngine.load(File("/none"), options).close() },
            "damaged" to thrown { MLCEngine.load(File(damaged), options).close() },
            "no_option" to thrown { load(EngineOptions(more = mapOf("colour" to JsonNull))).close() },
            "no_memory" to thrown { load(EngineOptions(context = Int.MAX_VALUE)).close() },
            "bad_json" to thrown { Request.of("[1]") },
            "refused" to thrown { engine.completions.create(BEGUN, Settings(temperature = 3.0)) },
            "cancelled" to thrown {
                runBlocking {
                    val job = async(Dispatchers.Default) {
                        MLCEngine.load(folder, options) { throw CancellationException("own") }
                    }
                    job.await().close()
                }
            },
            "own" to thrown { MLCEngine.load(folder, options) { error("own") }.close() },
        )
        runBlocking(Dispatchers.Default) {
            val running = async { thrown { engine.completions.create(BEGUN, LONG) } }
            while (engine.stats().pagesFree == engine.stats().pagesTotal) delay(5)
            engine.close()
            thrownBy["closed_while"] = running.await()
        }
        engine.close()
        thrownBy["closed"] = thrown { engine.completions.create(BEGUN, NEW) }
        thrownBy["closed_stats"] = thrown { engine.stats() }
        return JsonObject(thrownBy)
    }

    /** Closed by who collects on the engine's own thread, where nothing may wait. */
    suspend fun closing(): JsonElement {
        val engine = load()
        val ended = runBlocking(Dispatchers.Unconfined) {
            runCatching { engine.completions.stream(BEGUN, LONG).collect { engine.close() } }
        }
        return JsonPrimitive(ended.exceptionOrNull()?.let { it::class.simpleName })
    }

    /** Answers that are held to a form, or the code of the error where the library has no grammars. */
    suspend fun constrained(): JsonElement = load().use { engine ->
        val answer = JsonObject(mapOf("const" to JsonPrimitive(42)))
        val formats = listOf(
            ResponseFormat.jsonSchema(answer),
            ResponseFormat.regex("a fox"),
            ResponseFormat.grammar("root ::= \"fox\""),
        )
        JsonArray(
            formats.map { format ->
                val settings = Settings(maxTokens = 24, responseFormat = format, toolChoice = ToolChoice.NONE)
                try {
                    JsonPrimitive(engine.chat.completions.create(listOf(Message.user(STORY_PROMPT)), settings).text)
                } catch (e: RequestException) {
                    JsonPrimitive(e.code)
                }
            },
        )
    }

    /** Load and unload, with a request each; what the process has after each tenth of the rounds. */
    suspend fun leaks(rounds: Int): JsonElement {
        val sizes = mutableListOf<JsonElement>()
        for (round in 0 until rounds) {
            load().use { engine ->
                engine.completions.stream("$round $BEGUN", Settings(maxTokens = 2)).collect()
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

    /** Where the model runs with these options, and what was passed over. */
    suspend fun device(): JsonElement = load().use { engine ->
        val stats = engine.stats()
        val passed = JsonObject(stats.passedOver.mapValues { (_, reason) -> JsonPrimitive(reason) })
        JsonObject(mapOf("device" to JsonPrimitive(stats.device), "passed" to passed))
    }

    /** What loads with these bytes would take and get, without an error of the smallest. */
    suspend fun plans(bytes: String): JsonElement = JsonArray(
        bytes.split(",").map { memory ->
            val own = EngineOptions(more = more, memory = memory.toLong(), checkMemory = false)
            val plan = checkNotNull(MLCEngine.plan(folder, own))
            val tokens = load(own).use { it.stats().json.run { count("pages_total") * count("page_size") } }
            val numbers = listOf(plan.total, plan.least, plan.cache, tokens).map { JsonPrimitive(it) }
            JsonArray(numbers + JsonPrimitive(plan.fits))
        },
    )

    /** The plan of a folder of which only the manifest is read. */
    fun plan(path: String): JsonElement {
        val plan = checkNotNull(MLCEngine.plan(File(path), EngineOptions(memory = 1_000_000_000)))
        val numbers = listOf(plan.state, plan.cache, plan.least, plan.total)
        return JsonArray(numbers.map { JsonPrimitive(it) })
    }

    private fun JsonObject.count(name: String) = getValue(name).jsonPrimitive.content.toLong()

    suspend fun run(case: String): JsonElement {
        val argument = case.substringAfter(":")
        return when (case.substringBefore(":")) {
            "table" -> table(argument)
            "answers" -> answers()
            "images" -> images(argument)
            "together" -> together()
            "cancelling" -> cancelling()
            "errors" -> errors(argument)
            "closing" -> closing()
            "held" -> constrained()
            "device" -> device()
            "plans" -> plans(argument)
            "plan" -> plan(argument)
            "schemas" -> schemas()
            "limits" -> load(EngineOptions(more = more + ("threads" to JsonPrimitive(2)))).use { limits(it) }
            "typed" -> load().use { typed(it) }
            "numbers" -> load(from = File(argument)).use { numbers(it) }
            "leaks" -> leaks(argument.toInt())
            else -> JsonNull
        }
    }

    private companion object {
        // It does not end by itself before anybody looks: 400 tokens alone are a tenth of a second.
        val LONG = Settings(
            maxTokens = 400,
            temperature = 0.0,
            more = mapOf("ignore_eos" to JsonPrimitive(true), "n" to JsonPrimitive(64)),
        )
    }
}

fun main(arguments: Array<String>) {
    val more = Json.parseToJsonElement(arguments[1]).jsonObject
    val checks = Checks(File(arguments[0]), more)
    val results = runBlocking { arguments.drop(2).associate { it.substringBefore(":") to checks.run(it) } }
    println(JsonObject(results))
    exitProcess(0)
}
