package dev.wherry.sample

import android.app.Application
import androidx.compose.runtime.getValue
import androidx.compose.runtime.mutableStateListOf
import androidx.compose.runtime.mutableStateOf
import androidx.compose.runtime.setValue
import androidx.lifecycle.AndroidViewModel
import androidx.lifecycle.viewModelScope
import dev.wherry.EngineOptions
import dev.wherry.MLCEngine
import dev.wherry.Message
import dev.wherry.Settings
import dev.wherry.WherryException
import dev.wherry.android.modelFolder
import dev.wherry.android.trimOnLowMemory
import java.io.File
import java.io.IOException
import kotlinx.coroutines.Job
import kotlinx.coroutines.launch

private const val MODEL = "demo" // a folder of assets

data class Said(val role: String, val text: String)

/** The model and the conversation, which stay when the screen is turned. */
class ChatModel(application: Application) : AndroidViewModel(application) {
    val said = mutableStateListOf<Said>()
    var status by mutableStateOf("Loading")
        private set
    var answer by mutableStateOf<Job?>(null) // while one is written
        private set
    var engine by mutableStateOf<MLCEngine?>(null)
        private set
    private var trimming: AutoCloseable? = null

    init {
        viewModelScope.launch {
            status = reported {
                val folder = modelFolder(application, MODEL)
                val packed = File(application.noBackupFilesDir, "packed").apply { mkdirs() }
                val loaded = MLCEngine.load(folder, EngineOptions(packDir = packed)) {
                    status = "${it.phase} ${it.done * 100 / it.total.coerceAtLeast(1)} %"
                }
                trimming = loaded.trimOnLowMemory(application)
                engine = loaded
            }
        }
    }

    fun send(text: String) {
        val loaded = engine ?: return
        said += Said("user", text)
        val messages = said.map { Message(it.role, it.text) }
        said += Said("assistant", "")
        answer = viewModelScope.launch {
            status = reported {
                loaded.chat.completions.stream(messages, Settings(maxTokens = 400)).collect {
                    said[said.lastIndex] = said.last().run { copy(text = text + it.text) }
                }
            }
        }.also { job -> job.invokeOnCompletion { answer = null } }
    }

    fun stop() {
        answer?.cancel() // ends the request, too
    }

    override fun onCleared() {
        trimming?.close()
        engine?.close()
    }

    /** What went wrong, or nothing. */
    private suspend fun reported(work: suspend () -> Unit): String = try {
        work()
        ""
    } catch (e: WherryException) {
        e.message.orEmpty()
    } catch (e: IOException) { // no room for the model
        e.message.orEmpty()
    }
}
