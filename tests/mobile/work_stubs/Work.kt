/**
 * Of androidx.work, what the library calls: a manager that keeps what is enqueued, and whose work
 * tests run by themselves. No registry that tests reach has the library.
 */
package androidx.work

import android.content.Context
import java.util.concurrent.TimeUnit
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableStateFlow

enum class NetworkType { NOT_REQUIRED, CONNECTED, UNMETERED }

enum class ExistingWorkPolicy { REPLACE, KEEP }

enum class BackoffPolicy { EXPONENTIAL, LINEAR }

class Data(val keyValueMap: Map<String, Any?>) {
    fun getString(key: String): String? = keyValueMap[key] as? String

    fun getLong(key: String, defaultValue: Long): Long = keyValueMap[key] as? Long ?: defaultValue

    class Builder {
        private val values = mutableMapOf<String, Any?>()

        fun putString(key: String, value: String?): Builder = apply { values[key] = value }

        fun putLong(key: String, value: Long): Builder = apply { values[key] = value }

        fun build(): Data = Data(values.toMap())
    }
}

class Constraints(val network: NetworkType, val storageNotLow: Boolean, val charging: Boolean) {
    class Builder {
        private var network = NetworkType.NOT_REQUIRED
        private var storageNotLow = false
        private var charging = false

        fun setRequiredNetworkType(networkType: NetworkType): Builder = apply { network = networkType }

        fun setRequiresStorageNotLow(required: Boolean): Builder = apply { storageNotLow = required }

        fun setRequiresCharging(required: Boolean): Builder = apply { charging = required }

        fun build(): Constraints = Constraints(network, storageNotLow, charging)
    }
}

class OneTimeWorkRequest(
    val worker: Class<out ListenableWorker>,
    val input: Data,
    val constraints: Constraints,
) {
    class Builder(private val worker: Class<out ListenableWorker>) {
        private var input = Data(emptyMap())
        private var constraints = Constraints.Builder().build()

        fun setInputData(inputData: Data): Builder = apply { input = inputData }

        fun setConstraints(constraints: Constraints): Builder = apply { this.constraints = constraints }

        @Suppress("UNUSED_PARAMETER")
        fun setBackoffCriteria(policy: BackoffPolicy, delay: Long, unit: TimeUnit): Builder = this

        fun build(): OneTimeWorkRequest = OneTimeWorkRequest(worker, input, constraints)
    }
}

class WorkerParameters(val input: Data, val report: (Data) -> Unit)

abstract class ListenableWorker(val applicationContext: Context, private val parameters: WorkerParameters) {
    val inputData: Data get() = parameters.input

    protected fun tell(data: Data) = parameters.report(data)

    sealed class Result {
        class Success : Result()

        class Retry : Result()

        class Failure(val outputData: Data) : Result()

        companion object {
            @JvmStatic
            fun success(): Result = Success()

            @JvmStatic
            fun retry(): Result = Retry()

            @JvmStatic
            fun failure(outputData: Data): Result = Failure(outputData)
        }
    }
}

abstract class CoroutineWorker(context: Context, parameters: WorkerParameters) :
    ListenableWorker(context, parameters) {
    abstract suspend fun doWork(): Result

    suspend fun setProgress(data: Data) = tell(data)
}

class WorkInfo(val state: State, val progress: Data, val outputData: Data) {
    enum class State { ENQUEUED, RUNNING, SUCCEEDED, FAILED, BLOCKED, CANCELLED }
}

class WorkManager {
    val requests = mutableMapOf<String, OneTimeWorkRequest>()
    val infos = MutableStateFlow<List<WorkInfo>>(emptyList())

    fun enqueueUniqueWork(name: String, policy: ExistingWorkPolicy, request: OneTimeWorkRequest) {
        if (policy == ExistingWorkPolicy.REPLACE || name !in requests) requests[name] = request
    }

    fun cancelUniqueWork(name: String) {
        requests.remove(name)
    }

    @Suppress("UNUSED_PARAMETER")
    fun getWorkInfosForUniqueWorkFlow(name: String): Flow<List<WorkInfo>> = infos

    companion object {
        private val one = WorkManager()

        @JvmStatic
        fun getInstance(@Suppress("UNUSED_PARAMETER") context: Context): WorkManager = one
    }
}
