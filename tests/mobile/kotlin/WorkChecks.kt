/**
 * What tests/mobile/test_download.py asks of `BackgroundDownload`: `WorkChecks FOLDER CASE=URL...`. Runs
 * the work that it enqueues until a result that is not "again", and prints {"CASE": what happened}.
 */
import android.content.ComponentCallbacks
import android.content.Context
import android.content.res.AssetManager
import androidx.work.CoroutineWorker
import androidx.work.Data
import androidx.work.ListenableWorker.Result
import androidx.work.OneTimeWorkRequest
import androidx.work.WorkInfo
import androidx.work.WorkManager
import androidx.work.WorkerParameters
import dev.wherry.android.BackgroundDownload
import dev.wherry.android.DownloadConditions
import dev.wherry.android.DownloadState
import java.io.File
import kotlin.system.exitProcess
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

private class Files(private val folder: File) : Context() {
    override fun getSystemService(name: String): Any = error(name)

    override fun getFilesDir(): File = error("backups take it")

    override fun getNoBackupFilesDir(): File = folder

    override fun getAssets(): AssetManager = error("no assets")

    override fun getApplicationContext(): Context = this

    override fun registerComponentCallbacks(callbacks: ComponentCallbacks) = Unit

    override fun unregisterComponentCallbacks(callbacks: ComponentCallbacks) = Unit
}

private val NOTHING = Data(emptyMap())

private fun shown(state: DownloadState): String = when (state) {
    is DownloadState.None -> "none"
    is DownloadState.Waiting -> "waiting"
    is DownloadState.Running -> "running ${state.progress?.run { "$phase ${done == total}" }}"
    is DownloadState.Complete -> "complete ${File(state.folder, "wherry.json").isFile}"
    is DownloadState.Failed -> "failed: ${state.message}"
}

/** Runs a request once, as WorkManager does; the states that the app sees. */
private suspend fun runOnce(
    request: OneTimeWorkRequest,
    context: Context,
    download: BackgroundDownload,
): List<String> {
    val manager = WorkManager.getInstance(context)
    suspend fun see(state: WorkInfo.State, progress: Data = NOTHING, output: Data = NOTHING): String {
        manager.infos.value = listOf(WorkInfo(state, progress, output))
        return shown(download.state.first())
    }
    val seen = mutableListOf(see(WorkInfo.State.ENQUEUED), see(WorkInfo.State.RUNNING))
    var progress = NOTHING
    val maker = request.worker.getConstructor(Context::class.java, WorkerParameters::class.java)
    val worker = maker.newInstance(context, WorkerParameters(request.input) { progress = it })
    val result = (worker as CoroutineWorker).doWork()
    if (progress !== NOTHING) seen += see(WorkInfo.State.RUNNING, progress)
    seen += when (result) {
        is Result.Success -> see(WorkInfo.State.SUCCEEDED)
        is Result.Retry -> "again"
        is Result.Failure -> see(WorkInfo.State.FAILED, output = result.outputData)
    }
    return seen
}

private fun events(case: String, url: String, folder: File): JsonArray = runBlocking {
    val context = Files(folder)
    val manager = WorkManager.getInstance(context)
    manager.infos.value = emptyList()
    val download = BackgroundDownload(context, case)
    val seen = mutableListOf(shown(download.state.first()))
    val conditions = DownloadConditions(unmetered = case != "again", charging = case == "again")
    download.start(url, conditions, mapOf("Authorization" to "Bearer key"))
    download.start("http://127.0.0.1:9/other") // the first one stays
    val request = manager.requests.values.single()
    seen += request.constraints.run { "$network $storageNotLow $charging" }
    do seen += runOnce(request, context, download) while (seen.last() == "again")
    download.cancel()
    seen += "${manager.requests.size} left in ${download.folder.relativeTo(folder)}"
    JsonArray(seen.map(::JsonPrimitive))
}

fun main(arguments: Array<String>) {
    val folder = File(arguments[0])
    val said = arguments.drop(1).associate {
        val (case, url) = it.split("=", limit = 2)
        case to events(case, url, folder)
    }
    val odd = try {
        "${BackgroundDownload(Files(folder), "../x").folder}"
    } catch (e: IllegalArgumentException) {
        "${e.message}"
    }
    println(JsonObject(said + ("odd" to JsonPrimitive(odd))))
    exitProcess(0)
}
