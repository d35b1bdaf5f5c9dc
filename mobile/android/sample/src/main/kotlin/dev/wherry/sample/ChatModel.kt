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
import dev.wherry.LoadProgress
import dev.wherry.MLCEngine
import dev.wherry.Settings
import dev.wherry.WherryException
import dev.wherry.android.limitThreadsWhenHot
import dev.wherry.android.memoryForModels
import dev.wherry.android.trimOnLowMemory
import java.io.File
import java.io.IOException
import kotlinx.coroutines.Job
import kotlinx.coroutines.launch

data class Said(val role: String, val text: String)

/** Holds the model and the conversation, which survive a rotation of the screen. */
class ChatModel(private val application: Application) : AndroidViewModel(application) {
    val said = mutableStateListOf<Said>()
    var status by mutableStateOf("")
        private set

    // the model that is loaded or on its way; null: the list of models is shown
    var chosen by mutableStateOf<Offer?>(null)
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
    var isHot by mutableStateOf(false)
        private set
    var isShort by mutableStateOf(false) // of memory
        private set
    private var engine: MLCEngine? = null
    private var loading: Job? = null
    private val watches = mutableListOf(limitThreadsWhenHot(application) { isHot = it })

    fun obstacle(offer: Offer): String? = offer.obstacle(application)

    fun isHere(offer: Offer): Boolean = offer.isHere(application)

    fun delete(offer: Offer): Unit = offer.delete(application)

    fun open(offer: Offer) {
        chosen = offer
        loading = viewModelScope.launch {
            status = reported {
                val folder = offer.fetch(application, ::show)
                val packed = File(application.noBackupFilesDir, "packed/${offer.name}").apply { mkdirs() }
                val options = EngineOptions(packDir = packed, memory = memoryForModels(application))
                val loaded = MLCEngine.load(folder, options, ::show)
                engine = loaded
                watches += loaded.trimOnLowMemory(application) { isShort = true }
                session = ChatSession(loaded, settings = Settings(maxTokens = 400)).also { it.prewarm() }
            }
        }
    }

    private fun show(progress: LoadProgress) {
        status = "${progress.phase} ${progress.done * 100 / progress.total.coerceAtLeast(1)} %"
    }

    /** Goes back to the list of models; what is downloaded stays for the next time. */
    fun leave() {
        loading?.cancel()
        answer?.cancel()
        val old = engine
        viewModelScope.launch { old?.shutdown() }
        engine = null
        session = null
        chosen = null
        said.clear()
        status = ""
        forgotten = 0
    }

    fun send(text: String) {
        val session = session ?: return
        isShort = false
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
            val question = session?.undo()?.text ?: return@launch
            while (said.removeAt(said.lastIndex).role != "user") continue
            send(question)
        }
    }

    fun stop() {
        answer?.cancel() // cancelling the job also aborts its request
    }

    override fun onCleared() {
        watches.forEach(AutoCloseable::close)
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
