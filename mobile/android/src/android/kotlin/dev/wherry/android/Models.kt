package dev.wherry.android

import android.content.Context
import android.content.res.AssetManager
import java.io.File
import java.io.IOException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.withContext

/**
 * Copies a model from the app's assets to a folder, which [dev.wherry.MLCEngine.load] takes.
 *
 * Weights are mapped from files, and an asset is no file: the first call copies them, later calls
 * find the copies. Copies of another version of the model are replaced.
 *
 * @param name the model's folder below `assets/`, which `wherry package` has written
 * @throws IOException the asset does not exist, or no room for it
 */
public suspend fun modelFolder(context: Context, name: String): File =
    withContext(Dispatchers.IO) {
        // Backups of the system take the other files of an app, and fail beyond 25 MB.
        val folder = File(context.noBackupFilesDir, "wherry/$name")
        val manifest = context.assets.open("$name/$MANIFEST").use { it.readBytes() }
        val kept = File(folder, MANIFEST)
        if (!kept.isFile || !kept.readBytes().contentEquals(manifest)) {
            // The manifest marks the copy as complete, so it is deleted first and copied last.
            kept.delete()
            folder.mkdirs()
            val files = context.assets.list(name).orEmpty().filter { it != MANIFEST }
            folder.listFiles().orEmpty().filter { it.name !in files }.forEach(File::delete)
            for (file in files) {
                ensureActive()
                copy(context.assets, "$name/$file", File(folder, file))
            }
            val temporary = File(folder, ".$MANIFEST.tmp")
            temporary.writeBytes(manifest)
            if (!temporary.renameTo(kept)) throw IOException("$temporary cannot be renamed")
        }
        folder
    }

private fun copy(assets: AssetManager, asset: String, to: File) {
    assets.open(asset).use { from -> to.outputStream().use { from.copyTo(it, COPIED_AT_ONCE) } }
}

private const val MANIFEST = "wherry.json"
private const val COPIED_AT_ONCE = 1 shl 20 // bytes
