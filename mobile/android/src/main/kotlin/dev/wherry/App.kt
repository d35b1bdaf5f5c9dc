package dev.wherry

import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.thread
import kotlin.concurrent.withLock

/**
 * A native `wherry_app` and the calls that use it, from any thread, none after [close].
 *
 * Only [close] waits for a thread of the engine, so callbacks may call all other methods.
 */
internal class App(private val handle: Long) {
    private val lock = ReentrantLock()
    private val idle = lock.newCondition()
    private var calls = 0
    private var closed = false

    fun start(request: ByteArray, listener: ChunkListener): Long = use { app ->
        Native.start(app, request) { json, last ->
            inCallback.set(true)
            try {
                listener.onChunk(json, last)
            } finally {
                inCallback.remove()
            }
        }
    }

    val isClosed: Boolean get() = lock.withLock { closed }

    /** Aborts a request; false: it has ended already, or the engine is closed. */
    fun abort(id: Long): Boolean = try {
        use { app -> Native.abort(app, id) }
    } catch (_: EngineClosedException) {
        false
    }

    fun stats(): ByteArray = use(Native::stats)

    fun trim(): Unit = use(Native::trim)

    /** Aborts running requests and frees the model; later calls do nothing. */
    fun close() {
        lock.withLock {
            if (closed) return
            closed = true
            while (calls > 0) idle.awaitUninterruptibly()
        }
        // The engine waits for its callbacks to end, so a callback must close it on another thread.
        if (inCallback.get() == true) thread { Native.close(handle) } else Native.close(handle)
    }

    private inline fun <T> use(call: (Long) -> T): T {
        lock.withLock {
            if (closed) throw EngineClosedException()
            calls++
        }
        try {
            return call(handle)
        } finally {
            lock.withLock {
                calls--
                idle.signalAll()
            }
        }
    }

    private companion object {
        val inCallback = ThreadLocal<Boolean>()
    }
}
