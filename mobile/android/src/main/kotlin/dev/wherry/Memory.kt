package dev.wherry

import java.io.File
import java.io.IOException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonObject

/** Null: the folder has none that can be read, which is for the load to complain of. */
internal fun manifestOf(folder: File): JsonObject? = try {
    Json.parseToJsonElement(File(folder, "wherry.json").readText()).jsonObject
} catch (_: IOException) {
    null
} catch (_: IllegalArgumentException) { // of JSON, too
    null
}

/** Memory that a model takes with these options, in bytes: weights, a step, and the cache. */
internal fun memoryOf(manifest: JsonObject, options: JsonObject): Long? {
    val memory = manifest.obj("memory") ?: return null
    val planned = manifest.obj("deployment")
    // Pages of the cache are taken as they are used: what one request needs has to be there.
    val tokens = options.long("context") ?: planned?.long("context") ?: 0
    val weights = memory.long("weights") ?: return null
    return weights + (memory.long("workspace") ?: 0) + (memory.long("kv_per_token") ?: 0) * tokens
}

/** Memory that programs can still have without one being ended for it, in bytes; null: unknown. */
internal fun availableMemory(): Long? = try {
    File("/proc/meminfo").useLines { lines ->
        lines.firstOrNull { it.startsWith("MemAvailable:") }
            ?.filter(Char::isDigit)?.toLongOrNull()?.times(BYTES_OF_KIB)
    }
} catch (_: IOException) {
    null
}

/** Throws [NotEnoughMemoryException] where it is known that the memory does not suffice. */
internal fun requireMemory(folder: File, options: JsonObject) {
    val needed = manifestOf(folder)?.let { memoryOf(it, options) } ?: return
    val available = availableMemory() ?: return
    if (needed <= available) return
    throw NotEnoughMemoryException(
        "${folder.name} needs ${needed / MEGABYTE} MB of memory, ${available / MEGABYTE} MB are " +
            "free. Take a smaller context (EngineOptions.context) or a smaller model; " +
            "EngineOptions(checkMemory = false) tries all the same.",
    )
}

private const val BYTES_OF_KIB = 1024L
private const val MEGABYTE = 1_000_000L
