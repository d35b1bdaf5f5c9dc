package dev.wherry.sample

import android.app.Application
import androidx.compose.runtime.getValue
import androidx.compose.runtime.mutableStateListOf
import androidx.compose.runtime.mutableStateOf
import androidx.compose.runtime.setValue
import androidx.lifecycle.AndroidViewModel
import androidx.lifecycle.viewModelScope
import dev.wherry.ChatSession
import dev.wherry.EngineOptions
import dev.wherry.MLCEngine
import dev.wherry.Settings
import dev.wherry.WherryException
import dev.wherry.android.memoryForModels
import dev.wherry.android.modelFolder
import dev.wherry.android.trimOnLowMemory
import java.io.File
import java.io.IOException
import kotlinx.coroutines.Job
import kotlinx.coroutines.launch

private const val MODEL = "demo" // name of the model's folder below assets/

data class Said(val role: String, val text: String)

/** Holds the model and the conversation, which survive a rotation of the screen. */
class ChatModel(application: Application) : AndroidViewModel(application) {
    val said = mutableStateListOf<Said>()
    var status by mutableStateOf("Loading")
        private set
    // the job that receives an answer; null: none is running
    var answer by mutableStateOf<Job?>(null)
        private set
    // the conversation; null: the model is not loaded
    var session by mutableStateOf<ChatSession?>(null)
        private set
    // number of messages that the context had no room for in the last answer
    var forgotten by mutableStateOf(0)
        private set
    private var engine: MLCEngine? = null
    private var trimming: AutoCloseable? = null

    init {
        viewModelScope.launch {
            status = reported {
                val folder = modelFolder(application, MODEL)
                val packed = File(application.noBackupFilesDir, "packed").apply { mkdirs() }
                val options = EngineOptions(packDir = packed, memory = memoryForModels(application))
                val loaded = MLCEngine.load(folder, options) {
                    status = "${it.phase} ${it.done * 100 / it.total.coerceAtLeast(1)} %"
                }
                trimming = loaded.trimOnLowMemory(application)
                engine = loaded
                session = ChatSession(loaded, settings = Settings(maxTokens = 400)).also { it.prewarm() }
            }
        }
    }

    fun send(text: String) {
        val session = session ?: return
        said += Said("user", text)
        said += Said("assistant", "")
        answer = viewModelScope.launch {
            status = reported {
                session.stream(text).collect {
                    said[said.lastIndex] = said.last().run { copy(text = text + it.text) }
                }
            }
            forgotten = session.droppedMessages
        }.also { job -> job.invokeOnCompletion { answer = null } }
    }

    /** Answers the last message anew. */
    fun regenerate() {
        viewModelScope.launch {
            val asked = session?.undo()?.text ?: return@launch
            while (said.removeAt(said.lastIndex).role != "user") continue
            send(asked)
        }
    }

    fun stop() {
        answer?.cancel() // cancelling the job also aborts its request
    }

    override fun onCleared() {
        trimming?.close()
        engine?.close()
    }

    /** Does the work and returns the message of an error, or "" if it succeeds. */
    private suspend fun reported(work: suspend () -> Unit): String = try {
        work()
        ""
    } catch (e: WherryException) {
        e.message.orEmpty()
    } catch (e: IOException) { // thrown if the disk has no room for the model
        e.message.orEmpty()
    }
}
