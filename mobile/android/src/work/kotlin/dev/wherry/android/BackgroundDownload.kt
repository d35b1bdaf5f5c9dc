package dev.wherry.android

import android.content.Context
import androidx.work.BackoffPolicy
import androidx.work.Constraints
import androidx.work.CoroutineWorker
import androidx.work.Data
import androidx.work.ExistingWorkPolicy
import androidx.work.NetworkType
import androidx.work.OneTimeWorkRequest
import androidx.work.WorkInfo
import androidx.work.WorkManager
import androidx.work.WorkerParameters
import dev.wherry.DownloadException
import dev.wherry.DownloadOptions
import dev.wherry.FolderBusyException
import dev.wherry.LoadProgress
import dev.wherry.Models
import dev.wherry.WherryException
import java.io.File
import java.util.concurrent.TimeUnit
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.map

/**
 * What a download in the background waits for.
 *
 * @param unmetered a network without a price for each byte, such as Wi-Fi; else any network
 * @param storageNotLow that the system does not warn of a full storage
 * @param charging a charger
 */
public class DownloadConditions @JvmOverloads constructor(
    internal val unmetered: Boolean = true,
    internal val storageNotLow: Boolean = true,
    internal val charging: Boolean = false,
)

/** How far a [BackgroundDownload] is. */
public sealed class DownloadState {
    /** There is none: it was not started, or was cancelled. */
    public object None : DownloadState()

    /** It waits for its conditions, or to try again. */
    public object Waiting : DownloadState()

    /** It runs; [progress] is null before the first byte. */
    public class Running internal constructor(public val progress: LoadProgress?) : DownloadState()

    /** The model is complete in [folder], which [dev.wherry.MLCEngine.load] takes. */
    public class Complete internal constructor(public val folder: File) : DownloadState()

    /** It failed for good, as because the server has no such model; [message] says why. */
    public class Failed internal constructor(public val message: String) : DownloadState()
}

/**
 * Downloads a model while the app may be closed: Android's WorkManager runs it, after a restart of
 * the phone, too, and resumes it where it was interrupted.
 *
 * The app's build needs `androidx.work:work-runtime`, which the library does not bring along.
 *
 * @param name the model's folder below the app's `noBackupFilesDir/wherry`, as in [modelFolder]
 */
public class BackgroundDownload(context: Context, public val name: String) {
    private val context = context.applicationContext
    private val manager get() = WorkManager.getInstance(context)

    /** The folder that the model is downloaded to. */
    public val folder: File = downloadFolder(this.context, name)

    /** Where the download is, from now on; a new collector gets the present state at once. */
    public val state: Flow<DownloadState> =
        manager.getWorkInfosForUniqueWorkFlow(PREFIX + name).map { stateOf(it.lastOrNull()) }

    /**
     * Starts the download, unless one of this name waits or runs.
     *
     * @param url address of the folder, as in [Models.download]
     * @param headers headers for the server; WorkManager keeps them in a database of the app
     */
    @JvmOverloads
    public fun start(
        url: String,
        conditions: DownloadConditions = DownloadConditions(),
        headers: Map<String, String> = emptyMap(),
    ) {
        val input = Data.Builder().putString(URL, url).putString(NAME, name)
        headers.forEach { (header, value) -> input.putString(HEADER + header, value) }
        val network = if (conditions.unmetered) NetworkType.UNMETERED else NetworkType.CONNECTED
        val constraints = Constraints.Builder()
            .setRequiredNetworkType(network)
            .setRequiresStorageNotLow(conditions.storageNotLow)
            .setRequiresCharging(conditions.charging)
            .build()
        val request = OneTimeWorkRequest.Builder(DownloadWorker::class.java)
            .setInputData(input.build())
            .setConstraints(constraints)
            .setBackoffCriteria(BackoffPolicy.EXPONENTIAL, FIRST_WAIT, TimeUnit.SECONDS)
            .build()
        manager.enqueueUniqueWork(PREFIX + name, ExistingWorkPolicy.KEEP, request)
    }

    /** Ends the download; what has arrived stays, so that the next one resumes. */
    public fun cancel() {
        manager.cancelUniqueWork(PREFIX + name)
    }

    private fun stateOf(info: WorkInfo?): DownloadState = when (info?.state) {
        null, WorkInfo.State.CANCELLED -> DownloadState.None
        WorkInfo.State.ENQUEUED, WorkInfo.State.BLOCKED -> DownloadState.Waiting
        WorkInfo.State.RUNNING -> DownloadState.Running(progressOf(info.progress))
        WorkInfo.State.SUCCEEDED -> DownloadState.Complete(folder)
        WorkInfo.State.FAILED -> DownloadState.Failed(info.outputData.getString(ERROR).orEmpty())
    }

    private fun progressOf(data: Data): LoadProgress? = data.getString(PHASE)?.let {
        LoadProgress(it, data.getLong(DONE, 0), data.getLong(TOTAL, 0))
    }

    private companion object {
        const val FIRST_WAIT = 30L // seconds before the first repetition
    }
}

/** Runs a [BackgroundDownload]; WorkManager makes it by its name. */
public class DownloadWorker(context: Context, parameters: WorkerParameters) :
    CoroutineWorker(context, parameters) {
    override suspend fun doWork(): Result = try {
        val url = requireNotNull(inputData.getString(URL))
        val folder = downloadFolder(applicationContext, requireNotNull(inputData.getString(NAME)))
        Models.downloading(url, folder, DownloadOptions(headers())).collect {
            val progress = Data.Builder().putString(PHASE, it.phase)
            setProgress(progress.putLong(DONE, it.done).putLong(TOTAL, it.total).build())
        }
        Result.success()
    } catch (e: WherryException) {
        if (isPassing(e)) Result.retry() else Result.failure(failure(e))
    }

    private fun headers(): Map<String, String> = inputData.keyValueMap
        .filterKeys { it.startsWith(HEADER) }
        .map { (name, value) -> name.removePrefix(HEADER) to "$value" }
        .toMap()

    private fun failure(e: WherryException) = Data.Builder().putString(ERROR, e.message).build()

    /** Whether a later attempt may succeed: no connection, or a server that is busy. */
    private fun isPassing(e: WherryException): Boolean = when (e) {
        is FolderBusyException -> true
        is DownloadException -> e.httpStatus.let { it == null || it >= 500 || it in BUSY }
        else -> false
    }

    private companion object {
        val BUSY = setOf(408, 425, 429) // HTTP statuses
    }
}

private const val PREFIX = "dev.wherry.download."
private const val URL = "url"
private const val NAME = "name"
private const val HEADER = "header."
private const val PHASE = "phase"
private const val DONE = "done"
private const val TOTAL = "total"
private const val ERROR = "error"

private fun downloadFolder(context: Context, name: String): File {
    // A name of several parts would leave the folder of models.
    require(name.isNotEmpty() && name != "." && name != ".." && '/' !in name) {
        "\"$name\" is no name of a folder"
    }
    return File(context.noBackupFilesDir, "wherry/$name")
}
