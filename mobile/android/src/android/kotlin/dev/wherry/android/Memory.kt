package dev.wherry.android

import android.app.ActivityManager
import android.content.Context

/**
 * Returns the bytes that a model may take before the system ends apps, for
 * [dev.wherry.EngineOptions]; 0 if the device is short of memory already.
 */
public fun memoryForModels(context: Context): Long {
    val manager = context.getSystemService(Context.ACTIVITY_SERVICE) as ActivityManager
    val memory = ActivityManager.MemoryInfo().also(manager::getMemoryInfo)
    return maxOf(0, memory.availMem - memory.threshold)
}
