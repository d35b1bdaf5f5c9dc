package dev.wherry.android

import android.content.Context
import android.content.res.AssetManager
import java.io.File
import java.io.IOException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.withContext

/**
 * A model of the app's assets as a folder, which [dev.wherry.MLCEngine.load] takes.
 *
 * Weights are mapped from files, and an asset is none: the first call copies them, later ones find
 * them. Those of another version of the model are replaced.
 *
 * @param name the folder below `assets/` of what `wherry package` has written
 * @throws IOException there is no such asset, or no room for it
 */
public suspend fun modelFolder(context: Context, name: String): File =
    withContext(Dispatchers.IO) {
        val folder = File(context.filesDir, "wherry/$name")
        val wanted = context.assets.open("$name/$MANIFEST").use { it.readBytes() }
        val kept = File(folder, MANIFEST)
        if (!kept.isFile || !kept.readBytes().contentEquals(wanted)) {
            // The manifest says that all is there: it goes first and comes last.
            kept.delete()
            folder.mkdirs()
            val files = context.assets.list(name).orEmpty().filter { it != MANIFEST }
            folder.listFiles().orEmpty().filter { it.name !in files }.forEach(File::delete)
            for (file in files) {
                ensureActive()
                copy(context.assets, "$name/$file", File(folder, file))
            }
            val temporary = File(folder, ".$MANIFEST.tmp")
            temporary.writeBytes(wanted)
            if (!temporary.renameTo(kept)) throw IOException("$temporary cannot be renamed")
        }
        folder
    }

private fun copy(assets: AssetManager, asset: String, to: File) {
    assets.open(asset).use { from -> to.outputStream().use { from.copyTo(it, COPIED_AT_ONCE) } }
}

private const val MANIFEST = "wherry.json"
private const val COPIED_AT_ONCE = 1 shl 20 // bytes
