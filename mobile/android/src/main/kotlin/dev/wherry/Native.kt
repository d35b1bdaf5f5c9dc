package dev.wherry

import java.io.File

/**
 * Receives JSON in UTF-8, and whether it is the last; native code calls this on a thread of the
 * engine.
 */
internal fun interface ChunkListener {
    fun onChunk(json: ByteArray, last: Boolean)
}

/** Receives the progress of a load on the thread that loads; returning false ends the load. */
internal fun interface LoadListener {
    fun report(phase: ByteArray, done: Long, total: Long): Boolean
}

/**
 * The functions of `wherry_app.h`. Texts are UTF-8; a handle is an address, valid until [close].
 *
 * The library is the package's `libwherry.so`. On a desktop, the system property `wherry.libraries`
 * names other files to load, separated as in a path list.
 */
internal object Native {
    // value of wherry_status in wherry.h
    private const val INVALID_ARGUMENT = -1
    private const val NOT_FOUND = -2
    private const val OUT_OF_MEMORY = -3
    private const val INCOMPATIBLE = -4
    private const val BUSY = -5
    const val CANCELLED: Int = -7
    private const val UNREACHABLE = -8
    private const val DAMAGED = -9
    private const val NO_SPACE = -10

    init {
        val files = System.getProperty("wherry.libraries")
        if (files == null) {
            System.loadLibrary("wherry")
        } else {
            files.split(File.pathSeparator).forEach(System::load)
        }
    }

    @JvmStatic external fun open(folder: ByteArray, options: ByteArray, listener: LoadListener?): Long

    @JvmStatic external fun start(handle: Long, request: ByteArray, listener: ChunkListener): Long

    @JvmStatic external fun abort(handle: Long, id: Long): Boolean

    @JvmStatic external fun stats(handle: Long): ByteArray

    @JvmStatic external fun trim(handle: Long)

    @JvmStatic external fun limitThreads(most: Int)

    @JvmStatic external fun close(handle: Long)

    @JvmStatic
    external fun download(
        url: ByteArray,
        folder: ByteArray,
        options: ByteArray,
        fetcher: Fetcher,
        listener: LoadListener,
    )

    @JvmStatic external fun answerStatus(answer: Long, status: Int): Boolean

    @JvmStatic external fun answerBytes(answer: Long, bytes: ByteArray, n: Int): Boolean

    @JvmStatic external fun answerFailed(answer: Long, reason: ByteArray)

    /** Creates the exception for a wherry_status; native code calls this and throws the result. */
    @JvmStatic
    fun failure(status: Int, message: ByteArray): Throwable {
        val text = message.decodeToString()
        return when (status) {
            INVALID_ARGUMENT -> InvalidArgumentException(text)
            NOT_FOUND -> ModelNotFoundException(text)
            OUT_OF_MEMORY -> NotEnoughMemoryException(text)
            INCOMPATIBLE -> IncompatibleModelException(text)
            BUSY -> FolderBusyException(text)
            CANCELLED -> LoadCancelled()
            UNREACHABLE -> DownloadException(text)
            DAMAGED -> DamagedFileException(text)
            NO_SPACE -> NotEnoughSpaceException(text)
            else -> InternalException(text)
        }
    }
}

/**
 * Thrown when the progress listener ends a load; [MLCEngine.load] turns it into the coroutine's
 * cancellation.
 */
internal class LoadCancelled : RuntimeException("the load was cancelled")
