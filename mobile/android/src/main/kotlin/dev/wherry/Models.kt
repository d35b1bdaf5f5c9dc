package dev.wherry

import java.io.File
import java.util.concurrent.CompletableFuture
import java.util.function.Consumer
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.channelFlow
import kotlinx.coroutines.flow.conflate
import kotlinx.coroutines.future.future
import kotlinx.coroutines.isActive
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/**
 * Options of a download.
 *
 * @param headers headers of requests to the server, as `"Authorization" to "Bearer ..."`
 * @param verify whether the files of a complete folder are hashed, so that damaged ones are
 *     downloaded again; otherwise only their sizes are compared
 */
public class DownloadOptions @JvmOverloads constructor(
    internal val headers: Map<String, String> = emptyMap(),
    verify: Boolean = false,
) {
    internal val json = JsonObject(mapOf("verify" to JsonPrimitive(verify)))
}

/** Downloads models after an app is installed. */
public object Models {
    /**
     * Downloads a model to [folder], which [MLCEngine.load] then takes, off the caller's thread.
     *
     * Files that are already complete are not fetched again, and a complete folder needs no
     * network, so call this at each start. An interrupted download resumes; cancelling the
     * coroutine ends it. A model that is being replaced can be loaded until the new one is
     * complete.
     *
     * @param url address of the folder: `assets/NAME`, which `wherry package` has written, on any
     *     server
     * @param onProgress callback with the phases "check" and "download", in bytes, on the thread
     *     that downloads
     * @throws DownloadException there is no connection, or the server refuses
     * @throws DamagedFileException the files are not those that the manifest lists
     * @throws NotEnoughSpaceException the disk has no room; thrown before the first byte
     * @throws FolderBusyException another download writes to the folder
     */
    public suspend fun download(
        url: String,
        folder: File,
        options: DownloadOptions = DownloadOptions(),
        onProgress: (LoadProgress) -> Unit = {},
    ): File = coroutineScope {
        val http = Http(options.headers)
        val watch = launch(Dispatchers.Default) {
            try {
                awaitCancellation()
            } finally {
                http.cancel() // ends the download even while it waits for the network
            }
        }
        withContext(Dispatchers.IO) { run(url, folder, options, http, onProgress) }
        watch.cancel()
        folder
    }

    /**
     * Downloads like [download], as a flow of the progress; the flow ends when all files are
     * complete.
     */
    public fun downloading(
        url: String,
        folder: File,
        options: DownloadOptions = DownloadOptions(),
    ): Flow<LoadProgress> = channelFlow {
        download(url, folder, options) { trySend(it) }
    }.conflate()

    /** Downloads like [download], for Java; cancelling the future ends it. */
    @JvmStatic
    @JvmOverloads
    public fun downloadAsync(
        url: String,
        folder: File,
        options: DownloadOptions = DownloadOptions(),
        onProgress: Consumer<LoadProgress> = Consumer { },
    ): CompletableFuture<File> =
        downloads.future { download(url, folder, options, onProgress::accept) }

    private val downloads = CoroutineScope(SupervisorJob() + Dispatchers.Default)

    private suspend fun run(
        url: String,
        folder: File,
        options: DownloadOptions,
        http: Http,
        onProgress: (LoadProgress) -> Unit,
    ) {
        val here = currentCoroutineContext()
        var thrown: Throwable? = null // an exception of the caller's progress callback
        val listener = LoadListener { phase, done, total ->
            try {
                onProgress(LoadProgress(phase.decodeToString(), done, total))
                here.isActive
            } catch (e: Throwable) {
                thrown = e
                false
            }
        }
        try {
            val path = folder.absolutePath.encodeToByteArray()
            val json = options.json.toString().encodeToByteArray()
            Native.download(url.encodeToByteArray(), path, json, http, listener)
        } catch (e: LoadCancelled) {
            throw thrown ?: CancellationException("The download was cancelled.", e)
        } catch (e: DownloadException) {
            throw DownloadException("${e.message}", http.status)
        }
    }
}
