package dev.wherry.sample

import android.content.Context
import dev.wherry.LoadProgress
import dev.wherry.MLCEngine
import dev.wherry.Models
import dev.wherry.android.memoryForModels
import dev.wherry.android.modelFolder
import java.io.File

/**
 * A model that the app offers. `wherry-package.json` of `wherry package` has the numbers.
 *
 * @property name its folder below `assets/`, or on this device
 * @property server address of its folder (`assets/NAME`) on a server; null: the app contains it
 * @property bytes size of its files
 * @property memory bytes that it takes at least, before its manifest is here and tells
 */
class Offer(
    val name: String,
    val title: String,
    val server: String?,
    val bytes: Long,
    private val memory: Long,
) {
    private fun folder(context: Context) = File(context.noBackupFilesDir, "wherry/$name")

    /** Whether its files are on this device, all of them or in part. */
    fun isHere(context: Context): Boolean = server == null || folder(context).isDirectory

    /** Says whether the device has the memory for it: null if it has, else what is missing. */
    fun obstacle(context: Context): String? {
        val available = memoryForModels(context)
        val needed = MLCEngine.plan(folder(context))?.least ?: memory
        return if (needed <= available) null else "needs ${megabytes(needed)} MB of memory, ${megabytes(available)} are free"
    }

    /** Brings its files to this device; an interrupted download resumes. */
    suspend fun fetch(context: Context, show: (LoadProgress) -> Unit): File =
        if (server == null) modelFolder(context, name) else Models.download(server, folder(context), onProgress = show)

    fun delete(context: Context) {
        folder(context).deleteRecursively()
    }
}

fun megabytes(bytes: Long): Long = bytes / 1_000_000

/** The models of the sample; an app has its own, on a server of its own. */
val OFFERS = listOf(
    Offer("demo", "Demo, in the app", null, bytes = 2_400_000, memory = 20_000_000),
    Offer("smollm2-135m", "SmolLM2 (135M)", "https://models.example/smollm2-135m", bytes = 76_000_000, memory = 140_000_000),
    Offer("llama-3.2-1b", "Llama 3.2 (1B)", "https://models.example/llama-3.2-1b", bytes = 695_000_000, memory = 845_000_000),
)
