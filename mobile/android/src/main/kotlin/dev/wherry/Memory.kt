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
 * The memory of a model that is loaded with some options, told before the load; all in bytes.
 *
 * @property weights the model's weights, mapped from files or copied
 * @property workspace buffers of a step
 * @property state recurrent state of all sequences; 0 for models without one
 * @property cache upper bound of the KV cache, whose pages take memory when they are used first, and
 *     of snapshots of recurrent state
 * @property least what a load takes at least, with a cache for a short conversation, or for
 *     [EngineOptions]' context
 * @property available what the app may take; null: unknown
 */
public class MemoryPlan internal constructor(
    public val weights: Long,
    public val workspace: Long,
    public val state: Long,
    public val cache: Long,
    public val least: Long,
    public val available: Long?,
) {
    /** What the model takes at most. */
    public val total: Long get() = weights + workspace + state + cache
    public val fits: Boolean get() = available == null || least <= available
}

/**
 * Plans the cache: room for all sequences at their full length, but no more than half of the memory
 * that weights, workspace and recurrent state leave, because the app and the system need the rest.
 */
internal fun planOf(manifest: JsonObject, options: JsonObject, available: Long?): MemoryPlan? {
    val memory = manifest.obj("memory") ?: return null
    val planned = manifest.obj("deployment")
    val weights = memory.long("weights") ?: return null
    val workspace = memory.long("workspace") ?: 0
    val context = options.long("context") ?: planned?.long("context") ?: 0
    val sequences = options.long("max_batch") ?: planned?.long("max_batch") ?: 1
    val slot = memory.long("slot") ?: 0 // recurrent state of a sequence, or a snapshot of it
    val state = if (slot > 0) slot * (sequences + FEWEST_SNAPSHOTS) else 0L
    val page = memory.long("kv_per_token") ?: 0
    val perToken = if (slot > 0) page + page / SNAPSHOT_PART else page
    val fixed = weights + workspace + state
    val least = perToken * (options.long("context") ?: minOf(context, SHORT_CONVERSATION))
    val cache = perToken * (options.long("kv_tokens") ?: (sequences * context))
    val room = available?.let { (it - fixed) / 2 } ?: Long.MAX_VALUE
    val most = options.long("kv_memory") ?: maxOf(room, least)
    return MemoryPlan(weights, workspace, state, minOf(cache, most), fixed + least, available)
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

/** Plans a load; null: the folder has no readable manifest, which the load reports. */
internal fun planOf(folder: File, options: EngineOptions): MemoryPlan? =
    manifestOf(folder)?.let { planOf(it, options.json, options.memory ?: availableMemory()) }

/** Throws [NotEnoughMemoryException] if the memory is known to be too small for the model. */
internal fun requireMemory(folder: File, plan: MemoryPlan) {
    val available = plan.available
    if (available == null || plan.fits) return
    throw NotEnoughMemoryException(
        "${folder.name} needs ${plan.least / MEGABYTE} MB of memory, ${available / MEGABYTE} MB are " +
            "free. Take a smaller context (EngineOptions.context) or a smaller model; " +
            "EngineOptions(checkMemory = false) tries all the same.",
    )
}

private const val SHORT_CONVERSATION = 512L // tokens

// What the core takes for snapshots of a recurrent state (engine/cache/kv_cache.cc): a part of the
// bytes of the KV cache, and at least a few slots.
private const val SNAPSHOT_PART = 4L
private const val FEWEST_SNAPSHOTS = 2L
private const val BYTES_OF_KIB = 1024L
private const val MEGABYTE = 1_000_000L
