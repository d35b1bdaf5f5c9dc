package dev.wherry

import java.io.IOException
import java.net.HttpURLConnection
import java.net.URL

/** Fetches a file from a byte offset on; native code calls this on the thread of a download. */
internal fun interface Fetcher {
    fun fetch(url: ByteArray, from: Long, answer: Long)
}

/**
 * Fetches files with the system's HTTP client, which knows its proxies and certificates.
 *
 * @param headers headers for the named server; they are not sent to servers that it redirects to
 */
internal class Http(private val headers: Map<String, String>) : Fetcher {
    @Volatile
    private var current: HttpURLConnection? = null

    @Volatile
    private var cancelled = false

    /** HTTP status of the last answer; null: there was none. */
    @Volatile
    var status: Int? = null
        private set

    /**
     * Ends the answer that is being read; any thread may call this. If no bytes arrive, Android
     * ends it at once, but a desktop's Java only after its timeout, because it lets no other thread
     * close a stream that is being read.
     */
    fun cancel() {
        cancelled = true
        current?.disconnect()
    }

    override fun fetch(url: ByteArray, from: Long, answer: Long) {
        status = null
        try {
            read(connected(URL(url.decodeToString()), from), answer)
        // includes exceptions about wrong addresses and missing permissions
        } catch (e: Exception) {
            Native.answerFailed(answer, "${e.message ?: e}".encodeToByteArray())
        } finally {
            current?.disconnect()
        }
    }

    private fun read(connection: HttpURLConnection, answer: Long) {
        val code = connection.responseCode
        status = code
        if (!Native.answerStatus(answer, code)) return
        val body = connection.inputStream
        val buffer = ByteArray(AT_ONCE)
        while (true) {
            val n = body.read(buffer)
            if (n < 0 || !Native.answerBytes(answer, buffer, n)) return
        }
    }

    /**
     * Follows redirects itself, because Java's own code does not change the scheme, and sends all
     * headers to every server.
     */
    private fun connected(first: URL, from: Long): HttpURLConnection {
        var url = first
        repeat(MOST_REDIRECTS) {
            val connection = request(url, from, own = url.authority == first.authority)
            val location = connection.getHeaderField("Location")
            if (connection.responseCode !in REDIRECTS || location == null) return connection
            connection.disconnect()
            val next = URL(url, location)
            if (url.protocol == "https" && next.protocol != "https") {
                throw IOException("it redirects to $next, which is not encrypted")
            }
            url = next
        }
        throw IOException("it redirects more than $MOST_REDIRECTS times")
    }

    private fun request(url: URL, from: Long, own: Boolean): HttpURLConnection {
        val connection = url.openConnection() as? HttpURLConnection
            ?: throw IOException("${url.protocol} is not HTTP")
        connection.instanceFollowRedirects = false
        connection.connectTimeout = TIMEOUT
        connection.readTimeout = TIMEOUT
        connection.useCaches = false
        connection.setRequestProperty("Accept-Encoding", "identity")
        if (from > 0) connection.setRequestProperty("Range", "bytes=$from-")
        if (own) headers.forEach(connection::setRequestProperty)
        current = connection
        if (cancelled) throw IOException("it was cancelled")
        return connection
    }

    private companion object {
        const val AT_ONCE = 1 shl 16 // bytes that are read in one call
        // milliseconds without a byte after which the download tries again
        const val TIMEOUT = 15_000
        const val MOST_REDIRECTS = 10
        val REDIRECTS = setOf(301, 302, 303, 307, 308)
    }
}
