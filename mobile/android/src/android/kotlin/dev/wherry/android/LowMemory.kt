package dev.wherry.android

import android.content.ComponentCallbacks2
import android.content.Context
import android.content.res.Configuration
import dev.wherry.EngineClosedException
import dev.wherry.MLCEngine

/**
 * Frees an engine's idle caches whenever the system is short of memory, until the result is closed.
 *
 * It also frees them in the background, because the system ends apps that use much memory sooner.
 *
 * @param onTrim called after they were freed, for a word to the user
 */
public fun MLCEngine.trimOnLowMemory(context: Context, onTrim: () -> Unit = {}): AutoCloseable {
    val application = context.applicationContext
    val callbacks = object : ComponentCallbacks2 {
        override fun onTrimMemory(level: Int) {
            trimNow()
            onTrim()
        }

        @Deprecated("of systems before onTrimMemory")
        override fun onLowMemory() = onTrimMemory(0)

        override fun onConfigurationChanged(configuration: Configuration) = Unit
    }
    application.registerComponentCallbacks(callbacks)
    return AutoCloseable { application.unregisterComponentCallbacks(callbacks) }
}

private fun MLCEngine.trimNow() {
    try {
        trim()
    } catch (_: EngineClosedException) {
        return // the engine is closed and has no caches any more
    }
}
