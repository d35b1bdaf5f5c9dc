package dev.wherry

import java.io.File
import java.io.IOException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonObject

/** Reads the manifest of a folder. Null: it cannot be read, which the load will report. */
internal fun manifestOf(folder: File): JsonObject? = try {
    Json.parseToJsonElement(File(folder, "wherry.json").readText()).jsonObject
} catch (_: IOException) {
    null
} catch (_: IllegalArgumentException) { // JSON errors are of this class, too
    null
}

/**
 * Returns the bytes that a model takes with these options: weights, buffers of a step, and KV
 * cache.
 */
internal fun memoryOf(manifest: JsonObject, options: JsonObject): Long? {
    val memory = manifest.obj("memory") ?: return null
    val planned = manifest.obj("deployment")
    // Pages of the KV cache are allocated when they are used, so only the pages of one request must
    // fit.
    val tokens = options.long("context") ?: planned?.long("context") ?: 0
    val weights = memory.long("weights") ?: return null
    return weights + (memory.long("workspace") ?: 0) + (memory.long("kv_per_token") ?: 0) * tokens
}

/** Returns the bytes that programs can still allocate before the system ends one; null: unknown. */
internal fun availableMemory(): Long? = try {
    File("/proc/meminfo").useLines { lines ->
        lines.firstOrNull { it.startsWith("MemAvailable:") }
            ?.filter(Char::isDigit)?.toLongOrNull()?.times(BYTES_OF_KIB)
    }
} catch (_: IOException) {
    null
}

/** Throws [NotEnoughMemoryException] if the memory is known to be too small for the model. */
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
