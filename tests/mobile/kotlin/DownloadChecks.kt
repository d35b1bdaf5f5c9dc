/**
 * What tests/mobile/test_download.py asks of [Models]: `DownloadChecks FOLDER CASE=URL...`, each CASE
 * with a folder of its own below FOLDER. Prints one JSON object, {"CASE": what it found}.
 */
import dev.wherry.DownloadException
import dev.wherry.DownloadOptions
import dev.wherry.LoadProgress
import dev.wherry.Models
import java.io.File
import java.util.concurrent.TimeUnit
import kotlin.system.exitProcess
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

private val KEY = DownloadOptions(headers = mapOf("Authorization" to "Bearer key"))

private suspend fun thrown(what: suspend () -> Unit): JsonElement = try {
    what()
    JsonPrimitive("nothing")
} catch (e: Exception) {
    val status = (e as? DownloadException)?.httpStatus
    JsonPrimitive("${e::class.simpleName} $status: ${e.message}")
}

private suspend fun outcome(case: String, url: String, folder: File): JsonElement = when (case) {
    "future" -> {
        Models.downloadAsync(url, folder, KEY).get(30, TimeUnit.SECONDS)
        JsonPrimitive(folder.isDirectory)
    }
    "flow" -> {
        val said: List<LoadProgress> = Models.downloading(url, folder).toList()
        JsonPrimitive(said.last().let { "${it.phase} ${it.done == it.total}" })
    }
    "own" -> thrown { Models.download(url, folder) { if (it.done > 0) error("own") } }
    "cancelled" -> {
        val began = System.nanoTime()
        try {
            withTimeout(300) { Models.download(url, folder) }
            JsonPrimitive("nothing")
        } catch (_: TimeoutCancellationException) {
            JsonPrimitive((System.nanoTime() - began) / 1_000_000) // ms
        }
    }
    else -> thrown { Models.download(url, folder, KEY) }
}

fun main(arguments: Array<String>) {
    val said = runBlocking {
        arguments.drop(1).associate {
            val (case, url) = it.split("=", limit = 2)
            case to outcome(case, url, File(arguments[0], case))
        }
    }
    println(JsonObject(said))
    exitProcess(0)
}
