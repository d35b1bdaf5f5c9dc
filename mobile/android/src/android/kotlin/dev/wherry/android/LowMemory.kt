package dev.wherry.android

import android.content.ComponentCallbacks2
import android.content.Context
import android.content.res.Configuration
import dev.wherry.EngineClosedException
import dev.wherry.MLCEngine

/**
 * Give up an engine's idle caches whenever the system is short of memory, until this is closed.
 *
 * In the background, too: what is kept there makes the system end the app sooner.
 */
public fun MLCEngine.trimOnLowMemory(context: Context): AutoCloseable {
    val application = context.applicationContext
    val callbacks = object : ComponentCallbacks2 {
        override fun onTrimMemory(level: Int) = trimNow()

        @Deprecated("of systems before onTrimMemory")
        override fun onLowMemory() = trimNow()

        override fun onConfigurationChanged(configuration: Configuration) = Unit
    }
    application.registerComponentCallbacks(callbacks)
    return AutoCloseable { application.unregisterComponentCallbacks(callbacks) }
}

private fun MLCEngine.trimNow() {
    try {
        trim()
    } catch (_: EngineClosedException) {
        return // it has nothing any more
    }
}
