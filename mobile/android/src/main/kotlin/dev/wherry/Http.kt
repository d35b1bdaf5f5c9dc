package dev.wherry

import java.io.IOException
import java.net.HttpURLConnection
import java.net.URL

/** Called by native code on the thread of a download: fetch a file from a byte on. */
internal fun interface Fetcher {
    fun fetch(url: ByteArray, from: Long, answer: Long)
}

/**
 * The system's HTTP, which knows its proxies and certificates.
 *
 * @param headers sent to the server that is named, not to others that it redirects to
 */
internal class Http(private val headers: Map<String, String>) : Fetcher {
    @Volatile
    private var current: HttpURLConnection? = null

    @Volatile
    private var cancelled = false

    /** Of the last answer; null: there was none. */
    @Volatile
    var status: Int? = null
        private set

    /**
     * Ends the answer that is being read; any thread may. Where nothing comes, Android ends it at
     * once, a desktop's Java when its time is over: it lets no thread close a stream that is being read.
     */
    fun cancel() {
        cancelled = true
        current?.disconnect()
    }

    override fun fetch(url: ByteArray, from: Long, answer: Long) {
        status = null
        try {
            read(connected(URL(url.decodeToString()), from), answer)
        } catch (e: Exception) { // of addresses and permissions, too
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

    /** Redirects are followed here: Java's own stay with a scheme, and hand on all headers. */
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
        const val AT_ONCE = 1 shl 16 // bytes
        const val TIMEOUT = 15_000 // ms without a byte; it is asked again then
        const val MOST_REDIRECTS = 10
        val REDIRECTS = setOf(301, 302, 303, 307, 308)
    }
}
