package dev.wherry.android

import android.content.Context
import android.os.Build
import android.os.PowerManager
import dev.wherry.MLCEngine

/**
 * Lets engines take fewer threads while the device is hot, until the result is closed: two when the
 * system must reduce the device's speed, one when it is about to close apps.
 *
 * Android tells its heat from version 10 on; before it nothing happens.
 *
 * @param onHeat called with whether the device is hot, for a word to the user
 */
public fun limitThreadsWhenHot(context: Context, onHeat: (Boolean) -> Unit = {}): AutoCloseable {
    if (Build.VERSION.SDK_INT < Build.VERSION_CODES.Q) return AutoCloseable {}
    val power = context.applicationContext.getSystemService(Context.POWER_SERVICE) as PowerManager
    val listener = PowerManager.OnThermalStatusChangedListener { status ->
        MLCEngine.limitThreads(threadsAt(status))
        onHeat(status >= PowerManager.THERMAL_STATUS_SEVERE)
    }
    power.addThermalStatusListener(listener)
    return AutoCloseable {
        power.removeThermalStatusListener(listener)
        MLCEngine.limitThreads(0)
    }
}

private fun threadsAt(status: Int): Int = when {
    status >= PowerManager.THERMAL_STATUS_CRITICAL -> 1
    status >= PowerManager.THERMAL_STATUS_SEVERE -> 2
    else -> 0
}
