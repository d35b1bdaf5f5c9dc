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
 * How a model is fetched.
 *
 * @param headers of requests to the server, as `"Authorization" to "Bearer ..."`
 * @param verify whether files of a complete folder are read, so that damaged ones are fetched again;
 *     else their sizes are compared
 */
public class DownloadOptions @JvmOverloads constructor(
    internal val headers: Map<String, String> = emptyMap(),
    verify: Boolean = false,
) {
    internal val json = JsonObject(mapOf("verify" to JsonPrimitive(verify)))
}

/** Models that an app fetches once it is installed. */
public object Models {
    /**
     * Bring a model to [folder], which [MLCEngine.load] then takes, off the caller's thread.
     *
     * What is there and whole is not fetched again, and a folder that is complete needs no network:
     * call it at each start. An interrupted download resumes; cancelling the
     * coroutine ends it. A model that is replaced can be loaded until the new one is complete.
     *
     * @param url of the folder: `assets/NAME` of what `wherry package` has written, on any server
     * @param onProgress "check" and "download", both in bytes; called on the thread that downloads
     * @throws DownloadException no connection, or the server refuses
     * @throws DamagedFileException the files are not those that the manifest lists
     * @throws NotEnoughSpaceException before the first byte
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
                http.cancel() // whether or not it waits for the network
            }
        }
        withContext(Dispatchers.IO) { run(url, folder, options, http, onProgress) }
        watch.cancel()
        folder
    }

    /** [download] as a flow of how far it is; when it ends all is there. */
    public fun downloading(
        url: String,
        folder: File,
        options: DownloadOptions = DownloadOptions(),
    ): Flow<LoadProgress> = channelFlow {
        download(url, folder, options) { trySend(it) }
    }.conflate()

    /** [download] for Java; cancelling the future ends it. */
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
        var thrown: Throwable? = null // by the caller's own code
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
